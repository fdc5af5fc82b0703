// A file by TCP over hops of IEEE 802.15.4 in ns-3 (3.37, as in Debian's libns3-dev): the scenario of `chains`, a benchmark of
// `thinair-simulation`, which builds and runs this where that library is. 512 KiB over five hops in segments of 512 octets, one segment
// under way, 6LoWPAN packets put together at every hop, nodes that sense one hop, BER 1e-5.
//
// Tells frames with their acknowledgments, seconds of the transfer, and seconds that the processor has worked for it.

#include <sys/resource.h>

#include <cstdio>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/lr-wpan-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/sixlowpan-module.h"
#include "ns3/spectrum-module.h"

using namespace ns3;

static uint64_t frames = 0;
static uint64_t received = 0;
static double ended = 0.0;
static const uint64_t OCTETS = 512 * 1024;

static void OnFrame(Ptr<const Packet>)
{
    frames += 1;
}

static void OnOctets(Ptr<const Packet> packet, const Address&)
{
    received += packet->GetSize();
    ended = Simulator::Now().GetSeconds();
    if (received >= OCTETS)
    {
        // The last acknowledgment goes back.
        Simulator::Stop(Seconds(1));
    }
}

int main(int argc, char** argv)
{
    uint32_t mss = 512;
    double rate = 1e-5;
    CommandLine arguments;
    arguments.AddValue("mss", "octets of a segment", mss);
    arguments.AddValue("rate", "bit error rate", rate);
    arguments.Parse(argc, argv);

    const uint32_t hops = 5;
    const double start = 1.0;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    // A window of one segment.
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(false));
    Config::SetDefault("ns3::Icmpv6L4Protocol::DAD", BooleanValue(false));
    Config::SetDefault("ns3::Icmpv6L4Protocol::ReachableTime", TimeValue(Hours(24)));
    Config::SetDefault("ns3::Ipv6L3Protocol::SendIcmpv6Redirect", BooleanValue(false));

    NodeContainer nodes;
    nodes.Create(hops + 1);
    MobilityHelper mobility;
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.SetPositionAllocator("ns3::GridPositionAllocator", "DeltaX", DoubleValue(10.0), "GridWidth",
                                  UintegerValue(hops + 1), "LayoutType", StringValue("RowFirst"));
    mobility.Install(nodes);

    // Neighbours are 10 m apart, and nobody hears farther than 15 m.
    auto loss = CreateObject<RangePropagationLossModel>();
    loss->SetAttribute("MaxRange", DoubleValue(15.0));
    auto channel = CreateObject<SingleModelSpectrumChannel>();
    channel->AddPropagationLossModel(loss);
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    LrWpanHelper radios;
    radios.SetChannel(channel);
    NetDeviceContainer links = radios.Install(nodes);
    radios.AssociateToPan(links, 0);
    for (uint32_t node = 0; node <= hops; ++node)
    {
        auto phy = DynamicCast<LrWpanNetDevice>(links.Get(node))->GetPhy();
        phy->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&OnFrame));
        auto errors = CreateObject<RateErrorModel>();
        errors->SetUnit(RateErrorModel::ERROR_UNIT_BIT);
        errors->SetRate(rate);
        phy->SetPostReceptionErrorModel(errors);
    }

    InternetStackHelper internet;
    internet.SetIpv4StackInstall(false);
    internet.Install(nodes);
    SixLowPanHelper lowpan;
    NetDeviceContainer devices = lowpan.Install(links);
    Ipv6AddressHelper addresses;
    // Addresses for documentation are not forwarded.
    addresses.SetBase(Ipv6Address("fd00::"), Ipv6Prefix(64));
    Ipv6InterfaceContainer interfaces = addresses.Assign(devices);
    Ipv6StaticRoutingHelper routing;
    for (uint32_t node = 0; node <= hops; ++node)
    {
        interfaces.SetForwarding(node, true);
        auto routes = routing.GetStaticRouting(nodes.Get(node)->GetObject<Ipv6>());
        for (uint32_t to = 0; to <= hops; ++to)
        {
            if (to != node)
            {
                uint32_t next = to > node ? node + 1 : node - 1;
                // The source has the scope of the next hop: one that is link-local would not be forwarded.
                routes->AddHostRouteTo(interfaces.GetAddress(to, 1), interfaces.GetAddress(next, 1),
                                       interfaces.GetInterfaceIndex(node));
            }
        }
    }

    const uint16_t port = 5000;
    PacketSinkHelper sink("ns3::TcpSocketFactory", Inet6SocketAddress(Ipv6Address::GetAny(), port));
    ApplicationContainer server = sink.Install(nodes.Get(hops));
    server.Start(Seconds(0.0));
    server.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&OnOctets));
    BulkSendHelper file("ns3::TcpSocketFactory", Inet6SocketAddress(interfaces.GetAddress(hops, 1), port));
    file.SetAttribute("MaxBytes", UintegerValue(OCTETS));
    file.SetAttribute("SendSize", UintegerValue(mss));
    file.Install(nodes.Get(0)).Start(Seconds(start));

    Simulator::Stop(Seconds(20000));
    Simulator::Run();
    uint64_t events = Simulator::GetEventCount();
    Simulator::Destroy();
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double worked = usage.ru_utime.tv_sec + 1e-6 * usage.ru_utime.tv_usec;
    std::printf("octets %llu frames %llu seconds %.1f events %llu worked %.3f\n", (unsigned long long)received,
                (unsigned long long)frames, ended - start, (unsigned long long)events, worked);
    return received >= OCTETS ? 0 : 1;
}
