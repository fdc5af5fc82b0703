// Californium by OSCORE: `client URI FOLDER`, where URI is that of a folder that may be written to beside the test resources; `server
// PORT FOLDER`, whose /store has what was put last, and FETCH gets as many octets of it as the payload says. FOLDER has
// settings.json. The client prints a line for each thing that was so, and ends with an error at the first that was not.

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.regex.Pattern;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.cose.AlgorithmID;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;
import org.eclipse.californium.elements.util.StringUtil;
import org.eclipse.californium.oscore.HashMapCtxDB;
import org.eclipse.californium.oscore.OSCoreCoapStackFactory;
import org.eclipse.californium.oscore.OSCoreCtx;
import org.eclipse.californium.oscore.OSCoreResource;

public class OscorePeer {
  public static void main(String[] arguments) throws Exception {
    CoapConfig.register();
    UdpConfig.register();
    Configuration.setStandard(Configuration.createStandardWithoutFile());
    String settings = Files.readString(Path.of(arguments[2], "settings.json"));
    boolean isClient = arguments[0].equals("client");
    OSCoreCtx context =
        new OSCoreCtx(
            hex(settings, "secret"), isClient, AlgorithmID.AES_CCM_16_64_128, hex(settings, "sender-id"),
            hex(settings, "recipient-id"), AlgorithmID.HKDF_HMAC_SHA_256, 32, hex(settings, "salt"), null, 4096);
    HashMapCtxDB contexts = new HashMapCtxDB();
    OSCoreCoapStackFactory.useAsDefault(contexts);
    if (isClient) {
      contexts.addContext(arguments[1], context);
      client(arguments[1]);
      System.exit(0);
    }
    contexts.addContext(context);
    CoapServer server = new CoapServer(Integer.parseInt(arguments[1]));
    server.add(new Store());
    server.start();
    System.out.println("serving");
  }

  static byte[] hex(String settings, String name) {
    var found = Pattern.compile("\"" + name + "_hex\": *\"([0-9a-f]*)\"").matcher(settings);
    return found.find() ? StringUtil.hex2ByteArray(found.group(1)) : new byte[0];
  }

  static class Store extends OSCoreResource {
    byte[] content = "nothing yet".getBytes();

    Store() {
      super("store", true);
    }

    @Override
    public void handleGET(CoapExchange exchange) {
      exchange.respond(ResponseCode.CONTENT, content);
    }

    @Override
    public void handleFETCH(CoapExchange exchange) {
      int octets = Integer.parseInt(exchange.getRequestText());
      exchange.respond(ResponseCode.CONTENT, Arrays.copyOf(content, octets));
    }

    @Override
    public void handlePUT(CoapExchange exchange) {
      content = exchange.getRequestPayload();
      exchange.respond(ResponseCode.CHANGED);
    }
  }

  static void client(String base) throws Exception {
    so("GET of nothing", ask(base, Code.GET, "/none.txt", null).getCode() == ResponseCode.NOT_FOUND);
    for (int octets : new int[] {9, 3_000}) {
      byte[] body = new byte[octets];
      for (int at = 0; at < octets; at++) body[at] = (byte) (at * at % 251);
      so(octets + " octets go", ask(base, Code.PUT, "/body.bin", body).isSuccess());
      so(octets + " octets come", Arrays.equals(ask(base, Code.GET, "/body.bin", null).getPayload(), body));
    }
    for (String names : new String[] {"humidity", "humidity\n" + "unknown\n".repeat(400)}) {
      CoapResponse values = ask(base, Code.FETCH, "/values", names.getBytes());
      so("FETCH selects by " + names.length() + " octets", values.getResponseText().equals("humidity=40\n"));
    }
  }

  static Request request(String base, Code code, String path, byte[] payload) {
    Request request = new Request(code);
    request.setURI(base + path);
    request.getOptions().setOscore(new byte[0]);
    if (payload != null) request.setPayload(payload);
    return request;
  }

  static CoapResponse ask(String base, Code code, String path, byte[] payload) throws Exception {
    CoapClient client = new CoapClient();
    client.setTimeout(60_000L);
    return client.advanced(request(base, code, path, payload));
  }

  static void so(String what, boolean isSo) {
    System.out.println((isSo ? "" : "not so: ") + what);
    if (!isSo) System.exit(1);
  }
}
