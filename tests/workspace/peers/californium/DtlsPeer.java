// Californium by DTLS with connection IDs: `client URI KEYS`, where URI is that of a folder that may be written to; `server PORT KEYS`,
// whose /store has what was put last, whose /count changes, and which ends the session of a client that gets /expire. KEYS is a
// file with IDENTITY:KEY. The client prints a line for each thing that was so, and ends with an error at the first that was not;
// behind `move`, `resume` and `restart` it waits for a line.

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapHandler;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;
import org.eclipse.californium.elements.exception.ConnectorException;
import org.eclipse.californium.elements.util.StringUtil;
import org.eclipse.californium.scandium.DTLSConnector;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.californium.scandium.config.DtlsConnectorConfig;
import org.eclipse.californium.scandium.dtls.InMemorySessionStore;
import org.eclipse.californium.scandium.dtls.SingleNodeConnectionIdGenerator;
import org.eclipse.californium.scandium.dtls.cipher.CipherSuite;
import org.eclipse.californium.scandium.dtls.pskstore.AdvancedSinglePskStore;

public class DtlsPeer {
  static final int CID = 6;

  static DTLSConnector connector;
  static CoapEndpoint endpoint;

  public static void main(String[] arguments) throws Exception {
    CoapConfig.register();
    UdpConfig.register();
    DtlsConfig.register();
    Configuration.setStandard(Configuration.createStandardWithoutFile());
    Configuration.getStandard().set(CoapConfig.MAX_RESOURCE_BODY_SIZE, 200_000).set(CoapConfig.PREFERRED_BLOCK_SIZE, 1_024);
    String[] key = Files.readString(Path.of(arguments[2])).lines().findFirst().get().split(":");
    byte[] secret = StringUtil.hex2ByteArray(key[1]);
    if (arguments[0].equals("client")) {
      open(0, key[0], secret);
      client(arguments[1]);
      endpoint.destroy();
      secret[0] ^= 1;
      open(0, key[0], secret);
      otherKey(arguments[1]);
      System.exit(0);
    }
    open(Integer.parseInt(arguments[1]), key[0], secret);
    CoapServer server = new CoapServer();
    server.addEndpoint(endpoint);
    server.add(new Store(), new Count(), new Expire());
    server.start();
    System.out.println("serving");
  }

  static void open(int port, String identity, byte[] secret) {
    DtlsConnectorConfig.Builder builder = DtlsConnectorConfig.builder(Configuration.getStandard());
    builder.setAddress(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    builder.setAsList(DtlsConfig.DTLS_CIPHER_SUITES, CipherSuite.TLS_PSK_WITH_AES_128_CCM_8);
    builder.setAdvancedPskStore(new AdvancedSinglePskStore(identity, secret));
    builder.setConnectionIdGenerator(new SingleNodeConnectionIdGenerator(CID));
    builder.setSessionStore(new InMemorySessionStore(100, 3_600));
    connector = new DTLSConnector(builder.build());
    endpoint = CoapEndpoint.builder().setConnector(connector).build();
  }

  static class Store extends CoapResource {
    byte[] content = "nothing yet".getBytes();

    Store() {
      super("store");
    }

    @Override
    public void handleGET(CoapExchange exchange) {
      exchange.respond(ResponseCode.CONTENT, content);
    }

    @Override
    public void handlePUT(CoapExchange exchange) {
      content = exchange.getRequestPayload();
      exchange.respond(ResponseCode.CHANGED);
    }
  }

  static class Count extends CoapResource {
    int count = 0;

    Count() {
      super("count");
      setObservable(true);
      new Timer(true).schedule(later(() -> { count++; changed(); }), 100, 100);
    }

    @Override
    public void handleGET(CoapExchange exchange) {
      exchange.respond(ResponseCode.CONTENT, "count " + count);
    }
  }

  static class Expire extends CoapResource {
    Expire() {
      super("expire");
    }

    @Override
    public void handleGET(CoapExchange exchange) {
      InetSocketAddress client = exchange.getSourceSocketAddress();
      exchange.respond(ResponseCode.CONTENT, "soon");
      new Timer(true).schedule(later(() -> connector.close(client)), 200);
    }
  }

  static TimerTask later(Runnable task) {
    return new TimerTask() {
      @Override
      public void run() {
        task.run();
      }
    };
  }

  static void client(String base) throws Exception {
    OscorePeer.so("GET of nothing", ask(base + "/none.txt", Code.GET, null).getCode() == ResponseCode.NOT_FOUND);
    for (int octets : new int[] {9, 100_000}) {
      byte[] body = new byte[octets];
      for (int at = 0; at < octets; at++) body[at] = (byte) ((long) at * at % 251);
      OscorePeer.so(octets + " octets go", ask(base + "/body.bin", Code.PUT, body).isSuccess());
      byte[] received = ask(base + "/body.bin", Code.GET, null).getPayload();
      OscorePeer.so(octets + " octets come", Arrays.equals(received, body));
    }
    CountDownLatch notifications = new CountDownLatch(2);
    var relation = clientOf(base + "/time").observe(new CoapHandler() {
      @Override
      public void onLoad(CoapResponse response) {
        notifications.countDown();
      }

      @Override
      public void onError() {}
    });
    OscorePeer.so("notifications come", notifications.await(60, TimeUnit.SECONDS));
    relation.proactiveCancel();
    await("move");
    OscorePeer.so("the session moves", ask(base + "/time", Code.GET, null).isSuccess());
    await("resume");
    connector.forceResumeAllSessions();
    OscorePeer.so("the session is resumed", ask(base + "/time", Code.GET, null).isSuccess());
    await("restart");
    connector.forceResumeAllSessions();
    OscorePeer.so("another session begins", ask(base + "/time", Code.GET, null).isSuccess());
  }

  static void otherKey(String base) {
    try {
      OscorePeer.so("another key is refused", ask(base + "/time", Code.GET, null) == null);
    } catch (ConnectorException | IOException error) {
      System.out.println("another key is refused: " + error.getMessage());
    }
  }

  static void await(String name) throws IOException {
    System.out.println(name);
    while (System.in.read() != '\n') {}
  }

  static CoapClient clientOf(String uri) {
    CoapClient client = new CoapClient(uri);
    client.setEndpoint(endpoint);
    client.setTimeout(60_000L);
    return client;
  }

  static CoapResponse ask(String uri, Code code, byte[] payload) throws ConnectorException, IOException {
    Request request = new Request(code);
    if (payload != null) request.setPayload(payload);
    return clientOf(uri).advanced(request);
  }
}
