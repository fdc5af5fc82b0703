#!/bin/sh
# CoCoA: with four requests at a time, the timeout grows to its limit while each answer comes after 100 ms.
#
# Expected: an RTO is a mean of its last value and of the estimator of the sample, draft-ietf-core-cocoa-03, section 4.2, so that samples of
# 100 ms bring it down, however many exchanges are open; a sample changes SRTT by 1/8 and RTTVAR by 1/4 of the difference, RFC 6298, section 2.
# Version: org.eclipse.californium:californium-core 3.14.0 (Maven), congestion control COCOA, NSTART 4.
# Behavior: the mean is made of the last value times the number of open exchanges, the factor for a peer that is not known yet, and goes on to
# have that factor after samples. Each sample makes the timeout longer, and a lost message is repeated after 32 s in place of 1 s. With one
# exchange at a time the timeout falls. The two gains of the estimator are exchanged: SRTT moves by 1/4, RTTVAR by 1/8.
# Guess before the first run, from the source: it grows with 4, falls with 1.
# Output seen: "1: 2000 1150 713; 4: 8000 16600 32000; SRTT 125 RTTVAR 56" (timeout in ms at first, after one and two samples of 100 ms; the
# estimator after samples of 100 and 200 ms, where RFC 6298 has 112.5 and 62.5).
. "$(dirname "$0")/lib.sh"
maven_packages org.eclipse.californium:californium-core:3.14.0
cat >Timeouts.java <<'END'
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.Exchange;
import org.eclipse.californium.core.network.stack.RemoteEndpoint;
import org.eclipse.californium.core.network.stack.congestioncontrol.Cocoa;
import org.eclipse.californium.core.network.stack.congestioncontrol.Rto;
import org.eclipse.californium.elements.config.Configuration;

public class Timeouts extends Cocoa {
    Timeouts() {
        super("", new Configuration().set(CoapConfig.NSTART, 4), false);
    }

    static String timeouts(int open) {
        RemoteEndpoint peer = new Timeouts().createRemoteEndpoint("peer");
        for (int i = 0; i < open; i++) {
            peer.registerExchange(new Exchange(Request.newGet(), "peer", Exchange.Origin.LOCAL, null));
        }
        StringBuilder seen = new StringBuilder(open + ": " + peer.getRTO());
        for (int i = 0; i < 2; i++) {
            peer.processRttMeasurement(RemoteEndpoint.RtoType.STRONG, 100);
            seen.append(" " + peer.getRTO());
        }
        return seen.toString();
    }

    public static void main(String[] none) {
        CoapConfig.register();
        Rto estimator = new Rto(4, 2000);
        estimator.apply(100);
        estimator.apply(200);
        System.out.println(timeouts(1) + "; " + timeouts(4) + "; SRTT " + estimator.getRtt() + " RTTVAR " + estimator.getRttVar());
    }
}
END
javac -cp 'jar/*' -d . Timeouts.java
expect "californium-core 3.14.0, timeouts in ms" "$(java -cp 'jar/*:.' Timeouts 2>seen.log)" \
	"1: 2000 1150 713; 4: 8000 16600 32000; SRTT 125 RTTVAR 56"
