-- Wireshark dissector for Unidirectional Lightweight Encapsulation (ULE, RFC 4326 and RFC 5163) over MPEG-2 TS.
--
-- TS packets are followed by PID, as a receiver follows them (RFC 4326, section 7): SNDUs are put together, their
-- CRC-32 is checked, and what they carry goes to Wireshark's own dissectors by its EtherType. PSI and everything else
-- that is not ULE is left to Wireshark. A PID is one of ULE if a PMT says so (stream_type 0x91 or the registration descriptor "ULE1"), or a preference.
--
-- Runs with Lua 5.1 to 5.4: no operators on bits.

local proto = Proto("ule", "Unidirectional Lightweight Encapsulation")

proto.prefs.pids = Pref.string("PIDs of ULE", "", "Such as 0x35,256-260, besides those that a PMT tells")
proto.prefs.discard_after_crc_error = Pref.bool(
    "Discard behind a CRC error", false,
    "The rest of a TS packet is discarded behind an SNDU whose CRC is wrong (RFC 4326, section 7.2)"
)
proto.prefs.hand_over = Pref.bool("Dissect PDUs", true, "PDUs go to the dissectors of their EtherTypes")

local TS, SYNC = 188, 0x47
local PAT_PID, LAST_PSI_PID, NULL_PID = 0, 0x1F, 0x1FFF
local PAT, PMT, ULE_STREAM, ULE_DESCRIPTOR = 0, 2, 0x91, "\5\4ULE1"
local MAX_PP, MIN_LENGTH, MIN_LENGTH_NPA, NPA, CRC = 181, 5, 10, 6, 4
local TEST, BRIDGED, TS_CONCAT, PDU_CONCAT = 0x0000, 0x0001, 0x0002, 0x0003
local PADDING, TIMESTAMP, TIMESTAMP_H_LEN, ETHERTYPES = 0x00, 0x01, 3, 0x0600

-- What the numbers mean.

local TYPES = {
    [TEST] = "Test SNDU", [BRIDGED] = "Bridged frame", [TS_CONCAT] = "TS-Concat", [PDU_CONCAT] = "PDU-Concat",
    [0x0301] = "TimeStamp", [0x0800] = "IPv4", [0x0806] = "ARP", [0x22F1] = "ROHC", [0x86DD] = "IPv6",
}
for h_len = 1, 5 do
    TYPES[h_len * 256 + PADDING] = "Extension-Padding"
end
local SCRAMBLING = { [0] = "not scrambled" }
local ADAPTATION = { [0] = "reserved", [1] = "payload", [2] = "adaptation field", [3] = "adaptation field and payload" }

-- Fields.

local F = {}
local function field(kind, name, title, ...)
    F[name] = ProtoField[kind]("ule." .. name, title, ...)
end
field("uint16", "pid", "PID", base.HEX, nil, 0x1FFF)
field("bool", "tei", "Transport Error Indicator", 16, nil, 0x8000)
field("bool", "pusi", "Payload Unit Start Indicator", 16, nil, 0x4000)
field("bool", "priority", "Transport Priority", 16, nil, 0x2000)
field("uint8", "tsc", "Transport Scrambling Control", base.DEC, SCRAMBLING, 0xC0)
field("uint8", "afc", "Adaptation Field Control", base.DEC, ADAPTATION, 0x30)
field("uint8", "cc", "Continuity Counter", base.DEC, nil, 0x0F)
field("uint8", "pp", "Payload Pointer")
field("bytes", "part", "Part of an SNDU")
field("bytes", "skipped", "Not followed")
field("uint32", "lost", "Octets of an SNDU that are lost")
field("bytes", "end_indicator", "End Indicator")
field("bytes", "padding", "Padding")
field("bytes", "sndu", "SNDU")
field("uint32", "ts_packets", "TS packets that it came in")
field("framenum", "begins", "Begins in frame")
field("bool", "d", "D: Destination Address Absent", 16, nil, 0x8000)
field("uint16", "length", "Length", base.DEC, nil, 0x7FFF)
field("uint16", "type", "Type", base.HEX, TYPES)
field("ether", "npa", "Destination Address (NPA)")
field("none", "extension", "Extension Header")
field("uint8", "h_len", "H-LEN")
field("uint8", "h_type", "H-Type", base.HEX)
field("bytes", "extension_octets", "Octets of the extension header")
field("uint32", "timestamp", "Microseconds past the hour")
field("bytes", "test", "Test data")
field("uint16", "concat_type", "PDU-Concat Type", base.HEX, TYPES)
field("bool", "concat_r", "R: reserved", 16, nil, 0x8000)
field("uint16", "concat_length", "PDU Length", base.DEC, nil, 0x7FFF)
field("bytes", "ts_packet", "TS packet")
field("uint16", "pdu_type", "EtherType of the PDU", base.HEX, TYPES)
field("bytes", "pdu", "PDU")
field("bytes", "frame", "Bridged frame")
field("uint32", "crc", "CRC-32", base.HEX)
field("string", "crc_status", "CRC status")
for _, one in pairs(F) do
    proto.fields[#proto.fields + 1] = one
end

-- What a receiver counts. `tshark -q -z expert` tells how often each happened.
local E = {}
local experts = {}
local TITLES = {}
local function counted(name, title, group, severity)
    TITLES[name] = title
    E[name] = ProtoExpert.new("ule.error." .. name, title, expert.group[group], expert.severity[severity])
    experts[#experts + 1] = E[name]
end
counted("sync", "TS packet without sync octet", "MALFORMED", "ERROR")
counted("ts", "Transport error", "SEQUENCE", "ERROR")
counted("scrambled", "Scrambled TS packet", "UNDECODED", "WARN")
counted("afc", "Adaptation Field Control is not 1", "PROTOCOL", "WARN")
counted("cc", "Continuity error", "SEQUENCE", "ERROR")
counted("duplicate", "Duplicate TS packet", "SEQUENCE", "NOTE")
counted("pp", "Payload Pointer error", "MALFORMED", "ERROR")
counted("delimiting", "Delimiting error", "MALFORMED", "ERROR")
counted("length", "SNDU length error", "MALFORMED", "ERROR")
counted("crc", "SNDU CRC error", "CHECKSUM", "ERROR")
counted("type", "SNDU type error", "UNDECODED", "WARN")
counted("payload_length", "SNDU payload length error", "MALFORMED", "ERROR")
counted("ts_concat", "TS-Concat size mismatch", "MALFORMED", "ERROR")
counted("pdu_concat", "PDU-Concat size mismatch", "MALFORMED", "ERROR")
counted("unannounced", "PID that nothing announces", "UNDECODED", "NOTE")
proto.experts = experts

-- CRC-32 of RFC 4326, section 4.6: 0x04C11DB7, most significant bit first, from all ones, not inverted. Octet by
-- octet, by tables: `XOR` of two octets, and `CRC_TABLE` with the four octets of a CRC.

local XOR, CRC_TABLE = {}, { {}, {}, {}, {} }

local function xor_bits(a, b)
    local sum, weight = 0, 1
    while a > 0 or b > 0 do
        if a % 2 ~= b % 2 then
            sum = sum + weight
        end
        a, b, weight = math.floor(a / 2), math.floor(b / 2), weight * 2
    end
    return sum
end

local function fill_tables()
    local nibbles = {}
    for a = 0, 15 do
        for b = 0, 15 do
            nibbles[a * 16 + b] = xor_bits(a, b)
        end
    end
    for a = 0, 255 do
        local high, low = math.floor(a / 16) * 16, a % 16 * 16
        for b = 0, 255 do
            XOR[a * 256 + b] = nibbles[high + math.floor(b / 16)] * 16 + nibbles[low + b % 16]
        end
    end
    for i = 0, 255 do
        local crc = i * 2 ^ 24
        for _ = 1, 8 do
            local carry = crc >= 2 ^ 31
            crc = crc * 2 % 2 ^ 32
            if carry then
                crc = xor_bits(crc, 0x04C11DB7)
            end
        end
        for n = 1, 4 do
            CRC_TABLE[n][i] = math.floor(crc / 256 ^ (4 - n)) % 256
        end
    end
end
fill_tables()

-- Whether the last four octets are the CRC of those before.
local function is_crc_right(octets)
    local t1, t2, t3, t4 = CRC_TABLE[1], CRC_TABLE[2], CRC_TABLE[3], CRC_TABLE[4]
    local a, b, c, d = 255, 255, 255, 255
    for i = 1, #octets do
        local at = XOR[a * 256 + octets:byte(i)]
        a, b, c, d = XOR[b * 256 + t1[at]], XOR[c * 256 + t2[at]], XOR[d * 256 + t3[at]], t4[at]
    end
    return a + b + c + d == 0
end

-- The receiver of a PID: RFC 4326, section 7. What it knows before a TS packet is kept by the number of the frame, so
-- that frames can be shown in any order; so no table of it changes once it is made.

local Packet = {}
Packet.__index = Packet

-- Follows a TS packet. `before` has `cc`, the last Continuity Counter, and `partial`, the SNDU that is being put
-- together; nil if there is none. Returns the like for the packet behind it, and what was found: `sndus` that are
-- complete, `parts` of the TS packet by name of field, and `errors`.
local function follow(before, octets, frame)
    local p = setmetatable({
        octets = octets, frame = frame, cc = before.cc, partial = before.partial, sndus = {}, parts = {}, errors = {},
    }, Packet)
    p:read()
    return { cc = p.cc, partial = p.partial }, p
end

function Packet:count(name, why)
    self.errors[#self.errors + 1] = { name = name, why = why }
end

-- An error that ends the SNDU that is being put together.
function Packet:lose(name, why)
    self.lost = self.partial and self.partial.len
    self.partial = nil
    self:count(name, why)
end

function Packet:part(name, from, len)
    if len > 0 then
        self.parts[#self.parts + 1] = { name = name, from = from, len = len }
    end
end

function Packet:skip_from(at)
    self:part("skipped", at, TS - at)
end

function Packet:read()
    local second, _, fourth = self.octets:byte(2, 4)
    local is_start = math.floor(second / 64) % 2 == 1
    local afc, cc = math.floor(fourth / 16) % 4, fourth % 16
    if second >= 128 then
        self:lose("ts", "its indicator is set")
        return self:skip_from(4)
    elseif afc ~= 1 then
        self:count("afc", "it is " .. afc .. ", and a receiver discards the TS packet")
        return self:skip_from(4)
    end
    if fourth >= 64 then
        -- If it is, CRCs will say so. It may be a flipped bit.
        self:count("scrambled", "it is read nevertheless")
    end
    if cc == self.cc then
        self:count("duplicate", "a receiver discards it")
        return self:skip_from(4)
    elseif self.cc and cc ~= (self.cc + 1) % 16 then
        self:lose("cc", string.format("Continuity Counter %d behind %d", cc, self.cc))
    end
    self.cc = cc
    if not is_start then
        if not self.partial then
            return self:skip_from(4)
        end
        return self:start(self:go_on(4), false)
    end
    self.pp = self.octets:byte(5)
    if self.pp > MAX_PP then
        self:lose("pp", "more than 181")
        return self:skip_from(5)
    end
    local need = self.partial and self.partial.need - self.partial.len
    if need and need ~= self.pp then
        self:lose("delimiting", string.format("Payload Pointer %d, but %d octets are missing", self.pp, need))
    end
    if not self.partial then
        self:part("skipped", 5, self.pp)
        return self:start(5 + self.pp, true)
    end
    return self:start(self:go_on(5), true)
end

-- Goes on with the SNDU that is being put together. Returns where it ends.
function Packet:go_on(at)
    local partial = self.partial
    local len = math.min(partial.need - partial.len, TS - at)
    self:part("part", at, len)
    self.partial = {
        len = partial.len + len, need = partial.need, frame = partial.frame, packets = partial.packets + 1,
        before = partial, octets = self.octets:sub(at + 1, at + len),
    }
    return self:finish(at + len)
end

-- Ends the SNDU if it is complete, and the TS packet too, if a wrong CRC does.
function Packet:finish(at)
    local whole = self.partial
    if whole.len < whole.need then
        return at
    end
    local octets, piece = {}, whole
    while piece do
        table.insert(octets, 1, piece.octets)
        piece = piece.before
    end
    octets = table.concat(octets)
    self.partial = nil
    local is_right = is_crc_right(octets)
    self.sndus[#self.sndus + 1] = {
        octets = octets, is_right = is_right, frame = whole.frame, packets = whole.packets,
        at = whole.packets == 1 and at - whole.need or nil,
    }
    if not is_right and proto.prefs.discard_after_crc_error then
        self:skip_from(at)
        return TS
    end
    return at
end

-- SNDUs that begin at `at`, as many as there are.
function Packet:start(at, has_pp)
    while TS - at >= 2 do
        local first, second = self.octets:byte(at + 1, at + 2)
        local length, d = first % 128 * 256 + second, first >= 128
        if first == 0xFF and second == 0xFF then
            self:part("end_indicator", at, 2)
            return self:part("padding", at + 2, TS - at - 2)
        elseif not has_pp then
            self:count("delimiting", "octets behind an SNDU that are no End Indicator, without a Payload Pointer")
            return self:skip_from(at)
        elseif length < MIN_LENGTH or not d and length < MIN_LENGTH_NPA then
            self:count("length", "Length " .. length)
            return self:skip_from(at)
        end
        local need, len = length + 4, math.min(length + 4, TS - at)
        self:part("part", at, len)
        self.partial = {
            len = len, need = need, frame = self.frame, packets = 1, octets = self.octets:sub(at + 1, at + len),
        }
        at = self:finish(at + len)
    end
    if at < TS and self.octets:byte(TS) ~= 0xFF then
        self:count("delimiting", "an octet behind an SNDU that is no padding")
        return self:skip_from(at)
    end
    self:part("padding", at, TS - at)
end

-- SNDUs: RFC 4326, sections 4 and 5; RFC 5163.

local function u16(octets, at)
    local a, b = octets:byte(at + 1, at + 2)
    return a * 256 + b
end

local function type_name(number)
    return TYPES[number] or string.format("0x%04x", number)
end

-- What is known of a frame while it is dissected: `root` of its tree, and what to say of it in a line.
local Frame = {}
Frame.__index = Frame

function Frame:note(what)
    if not self.notes[what] then
        self.order[#self.order + 1] = what
    end
    self.notes[what] = (self.notes[what] or 0) + 1
end

-- What is counted has the same words each time; `why` stands in the tree.
function Frame:expert(tree, name, why)
    tree:add_proto_expert_info(E[name], TITLES[name])
    tree:append_text(": " .. why)
    self:note(TITLES[name])
end

local ADDRESSES = { "dl_src", "dl_dst", "net_src", "net_dst", "src", "dst", "src_port", "dst_port" }

-- A PDU goes to whom its EtherType belongs. What a dissector throws, it has told in the tree. Addresses stay those of
-- the frame, as there are many PDUs in it.
function Frame:hand_over(dissect, tvb)
    if not proto.prefs.hand_over then
        return
    end
    local kept = {}
    for _, name in ipairs(ADDRESSES) do
        kept[name] = self.pinfo[name]
    end
    pcall(dissect, tvb, self.pinfo, self.root)
    for _, name in ipairs(ADDRESSES) do
        self.pinfo[name] = kept[name]
    end
end

local function by_ethertype(number)
    return function(tvb, pinfo, root)
        DissectorTable.get("ethertype"):try(number, tvb, pinfo, root)
    end
end

local function by_name(name)
    return function(tvb, pinfo, root)
        Dissector.get(name):call(tvb, pinfo, root)
    end
end

-- Payload of a Type, behind `at` up to `finish`: extension headers one behind the other, then what they lead to.
function Frame:read_payload(sndu, tree, number, at, finish, is_concat)
    while number < ETHERTYPES do
        local h_len, h_type = math.floor(number / 256), number % 256
        if h_len == 0 then
            return self:read_mandatory(sndu, tree, number, at, finish, is_concat)
        end
        local len = 2 * h_len
        if at + len > finish then
            return self:expert(tree, "payload_length", "extension headers are longer than the SNDU")
        end
        local sub = tree:add(F.extension, sndu:range(at, len))
        sub:set_text("Extension Header, " .. (TYPES[number] or string.format("optional, 0x%04x", number)))
        sub:add(F.h_len, sndu:range(at, 0), h_len):set_generated()
        sub:add(F.h_type, sndu:range(at, 0), h_type):set_generated()
        if h_type == TIMESTAMP and h_len == TIMESTAMP_H_LEN then
            sub:add(F.timestamp, sndu:range(at, 4))
        elseif h_len > 1 then
            sub:add(F.extension_octets, sndu:range(at, len - 2))
        end
        number = sndu:range(at + len - 2, 2):uint()
        sub:add(F.type, sndu:range(at + len - 2, 2))
        at = at + len
    end
    self:read_pdu(sndu, tree, number, at, finish)
end

function Frame:read_pdu(sndu, tree, number, at, finish)
    tree:add(F.pdu_type, sndu:range(at, 0), number):set_generated()
    self:note(type_name(number))
    if at < finish then
        tree:add(F.pdu, sndu:range(at, finish - at))
        self:hand_over(by_ethertype(number), sndu:range(at, finish - at):tvb())
    end
end

function Frame:read_mandatory(sndu, tree, number, at, finish, is_concat)
    self:note(type_name(number))
    if number == TEST then
        if at < finish then
            tree:add(F.test, sndu:range(at, finish - at))
        end
    elseif number == BRIDGED then
        self:read_bridged(sndu, tree, at, finish)
    elseif number == TS_CONCAT then
        self:read_ts_concat(sndu, tree, at, finish)
    elseif number == PDU_CONCAT and not is_concat then
        self:read_pdu_concat(sndu, tree, at, finish)
    else
        self:expert(tree, "type", string.format("the mandatory extension header 0x%04x is not known here", number))
    end
end

function Frame:read_bridged(sndu, tree, at, finish)
    local len = finish - at
    if len < 14 then
        return self:expert(tree, "payload_length", "a bridged frame without a MAC header")
    end
    local llc = sndu:range(at + 12, 2):uint()
    if llc < ETHERTYPES and llc > len - 14 then
        return self:expert(tree, "payload_length", "an LLC length of " .. llc .. ", but " .. len - 14 .. " octets")
    end
    tree:add(F.frame, sndu:range(at, len))
    self:hand_over(by_name("eth_withoutfcs"), sndu:range(at, len):tvb())
end

function Frame:read_ts_concat(sndu, tree, at, finish)
    if (finish - at) % TS ~= 0 then
        return self:expert(tree, "ts_concat", finish - at .. " octets are no whole number of TS packets")
    end
    for from = at, finish - 1, TS do
        tree:add(F.ts_packet, sndu:range(from, TS))
        self:hand_over(by_name("mp2t"), sndu:range(from, TS):tvb())
    end
end

function Frame:read_pdu_concat(sndu, tree, at, finish)
    if at + 2 > finish then
        return self:expert(tree, "payload_length", "it has no Type")
    end
    local number = sndu:range(at, 2):uint()
    tree:add(F.concat_type, sndu:range(at, 2))
    if number == PDU_CONCAT then
        return self:expert(tree, "type", "a PDU-Concat within a PDU-Concat")
    end
    local pdus, from = {}, at + 2
    while from + 2 <= finish do
        local len = sndu:range(from, 2):uint() % 0x8000
        pdus[#pdus + 1] = { from = from + 2, len = len }
        from = from + 2 + len
    end
    if from ~= finish then
        return self:expert(tree, "pdu_concat", "the lengths of PDUs do not add up to that of the SNDU")
    end
    for _, pdu in ipairs(pdus) do
        tree:add(F.concat_r, sndu:range(pdu.from - 2, 2))
        tree:add(F.concat_length, sndu:range(pdu.from - 2, 2))
        self:read_payload(sndu, tree, number, pdu.from, pdu.from + pdu.len, true)
    end
end

-- An SNDU that is complete. `ts` is the TS packet in which it ends.
function Frame:read_sndu(sndu, ts)
    local octets = sndu.octets
    local tvb = sndu.at and ts:range(sndu.at, #octets):tvb()
        or ByteArray.new(octets, true):tvb("SNDU of " .. #octets .. " octets")
    local tree = self.root:add(proto, tvb(), "SNDU, " .. type_name(u16(octets, 2)) .. ", " .. #octets .. " octets")
    tree:add(F.sndu, tvb())
    tree:add(F.ts_packets, tvb(0, 0), sndu.packets):set_generated()
    if sndu.frame ~= self.pinfo.number then
        tree:add(F.begins, tvb(0, 0), sndu.frame):set_generated()
    end
    tree:add(F.d, tvb(0, 2))
    tree:add(F.length, tvb(0, 2))
    tree:add(F.type, tvb(2, 2))
    local at, finish = 4, #octets - CRC
    if octets:byte(1) < 128 then
        tree:add(F.npa, tvb(4, NPA))
        at = at + NPA
    end
    tree:add(F.crc, tvb(finish, CRC))
    tree:add(F.crc_status, tvb(finish, CRC), sndu.is_right and "right" or "wrong"):set_generated()
    if not sndu.is_right then
        self:expert(tree, "crc", "a receiver discards it")
        tree:add(F.skipped, tvb(4, finish - 4))
        return
    end
    self:read_payload(tvb, tree, u16(octets, 2), at, finish)
end

-- TS packets: what their PIDs are, and what was known before each.

-- By multiplex and PID: what it is, and the receiver behind the last packet; for PSI, what there is of a section.
local kinds, receivers = {}, {}
-- By frame and offset in it: what the PID is, and the receiver before the packet.
local frames = {}

local named = {}

local function read_named()
    named = {}
    for from, to in proto.prefs.pids:gmatch("([%w]+)%s*%-?%s*([%w]*)") do
        from = tonumber(from)
        to = to == "" and from or tonumber(to)
        for pid = from or 0, to or -1 do
            named[pid] = "ule"
        end
    end
end

function proto.init()
    kinds, receivers, frames = {}, {}, {}
    read_named()
end

proto.prefs_changed = read_named

-- The multiplex that a frame is of: several can use the same PIDs.
local function multiplex(pinfo)
    return table.concat({
        tostring(pinfo.src), tostring(pinfo.src_port), tostring(pinfo.dst), tostring(pinfo.dst_port),
    }, " ")
end

local function kind_of(known, pid)
    if pid == NULL_PID then
        return "null"
    end
    -- As long as nothing is known of ULE, nothing is taken from Wireshark.
    local has_ule = known.has_ule or next(named)
    return named[pid] or known[pid] or (pid <= LAST_PSI_PID or not has_ule) and "mp2t" or "unannounced"
end

-- What a section of a PAT or PMT announces: ISO/IEC 13818-1, sections 2.4.4.3 and 2.4.4.8.
local function learn(known, receivers, section)
    local kind, finish = section:byte(1), #section - CRC
    if not is_crc_right(section) then
        return
    elseif kind == PAT then
        for at = 8, finish - 4, 4 do
            local pid = u16(section, at + 2) % 0x2000
            known[pid] = known[pid] or "mp2t"
        end
    elseif kind == PMT and finish >= 12 then
        local at = 12 + u16(section, 10) % 0x1000
        while at + 5 <= finish do
            local behind = at + 5 + u16(section, at + 3) % 0x1000
            local is_ule = section:byte(at + 1) == ULE_STREAM
                or section:sub(at + 6, behind):find(ULE_DESCRIPTOR, 1, true) ~= nil
            local pid = u16(section, at + 1) % 0x2000
            if is_ule ~= (known[pid] == "ule") then
                receivers[pid] = nil
            end
            known[pid] = is_ule and "ule" or "mp2t"
            known.has_ule = known.has_ule or is_ule
            at = behind
        end
    end
end

-- Puts sections together: `before` is what there is of one. Returns what there is behind the TS packet.
local function follow_sections(before, octets, known, receivers)
    local _, second, _, fourth = octets:byte(1, 4)
    local data = octets:sub(5)
    if math.floor(fourth / 16) % 4 ~= 1 then
        return before
    elseif math.floor(second / 64) % 2 == 1 then
        data = data:sub(2 + data:byte(1))
    elseif not before then
        return nil
    else
        data = before .. data
    end
    while #data >= 3 and data:byte(1) ~= 0xFF do
        local len = 3 + u16(data, 1) % 0x1000
        if #data < len then
            return data
        end
        learn(known, receivers, data:sub(1, len))
        data = data:sub(len + 1)
    end
    return nil
end

-- What was known before the TS packet; it is noted when the packet is seen first.
function Frame:before(ts, pid)
    local at = ts:offset()
    local frame = frames[self.pinfo.number] or {}
    frames[self.pinfo.number] = frame
    if not self.pinfo.visited and not frame[at] then
        frame[at] = { kind = kind_of(self.known, pid), receiver = self.receivers[pid] }
    end
    return frame[at]
end

function Frame:read_ule(ts, pid, receiver)
    local after, found = follow(receiver or {}, ts:raw(), self.pinfo.number)
    if not self.pinfo.visited then
        self.receivers[pid] = after
    end
    local title = string.format("MPEG-2 TS with ULE, PID 0x%04x, CC %d", pid, ts:range(3, 1):uint() % 16)
    local tree = self.root:add(proto, ts(), title)
    for _, name in ipairs { "tei", "pusi", "priority", "pid" } do
        tree:add(F[name], ts:range(1, 2))
    end
    for _, name in ipairs { "tsc", "afc", "cc" } do
        tree:add(F[name], ts:range(3, 1))
    end
    if found.pp then
        tree:add(F.pp, ts:range(4, 1))
    end
    for _, part in ipairs(found.parts) do
        tree:add(F[part.name], ts:range(part.from, part.len))
    end
    if found.lost then
        tree:add(F.lost, ts:range(0, 0), found.lost):set_generated()
    end
    for _, problem in ipairs(found.errors) do
        self:expert(tree, problem.name, problem.why)
    end
    for _, sndu in ipairs(found.sndus) do
        self.sndus[#self.sndus + 1] = { sndu = sndu, ts = ts, pid = pid }
    end
    self.ule = self.ule + 1
end

function Frame:read_ts(ts)
    local octets = ts:raw()
    if octets:byte(1) ~= SYNC then
        local tree = self.root:add(proto, ts(), "MPEG-2 TS, damaged")
        self:expert(tree, "sync", "it does not begin with 0x47")
        self.ule = self.ule + 1
        return
    end
    local pid = u16(octets, 1) % 0x2000
    local before = self:before(ts, pid)
    if before.kind == "ule" then
        self:read_ule(ts, pid, before.receiver)
    elseif before.kind == "mp2t" then
        self:hand_over(by_name("mp2t"), ts)
        if not self.pinfo.visited and (pid == PAT_PID or self.known[pid] == "mp2t") then
            self.receivers[pid] = follow_sections(self.receivers[pid], octets, self.known, self.receivers)
        end
    else
        local tree = self.root:add(proto, ts(), string.format("MPEG-2 TS, PID 0x%04x, %s", pid, before.kind))
        tree:add(F.pid, ts:range(1, 2))
        if before.kind == "unannounced" then
            tree:add_proto_expert_info(E.unannounced, TITLES.unannounced)
        end
    end
end

function Frame:summary()
    local parts = {}
    for _, what in ipairs(self.order) do
        local count = self.notes[what]
        parts[#parts + 1] = count > 1 and what .. " x" .. count or what
    end
    local sndus = #self.sndus == 1 and "1 SNDU" or #self.sndus .. " SNDUs"
    return sndus .. (#parts > 0 and ": " .. table.concat(parts, ", ") or "")
end

function proto.dissector(tvb, pinfo, root)
    local key = multiplex(pinfo)
    kinds[key], receivers[key] = kinds[key] or {}, receivers[key] or {}
    local frame = setmetatable({
        pinfo = pinfo, root = root, known = kinds[key], receivers = receivers[key],
        sndus = {}, ule = 0, notes = {}, order = {},
    }, Frame)
    for at = 0, tvb:len() - TS, TS do
        frame:read_ts(tvb:range(at, TS):tvb())
    end
    -- Behind the TS packets: what is within PDUs changes what Wireshark takes for the addresses of the frame.
    for _, one in ipairs(frame.sndus) do
        -- For dissectors that keep what is a channel's own, such as thinair_coap.lua.
        pinfo.private.ule_pid = tostring(one.pid)
        frame:read_sndu(one.sndu, one.ts)
    end
    if frame.ule > 0 then
        pinfo.cols.protocol = "ULE"
        pinfo.cols.info:clear_fence()
        pinfo.cols.info = frame:summary()
    end
    return tvb:len()
end

-- Whether a datagram holds TS packets. Some may be damaged.
local function is_ts(tvb, pinfo, root)
    local count = tvb:len() / TS
    if count < 1 or count ~= math.floor(count) then
        return false
    end
    local octets, good = tvb:raw(), 0
    for i = 0, count - 1 do
        good = good + (octets:byte(i * TS + 1) == SYNC and 1 or 0)
    end
    if good * 2 <= count then
        return false
    end
    proto.dissector(tvb, pinfo, root)
    return true
end

-- TS over UDP and over RTP, and files of TS packets.
proto:register_heuristic("udp", is_ts)
DissectorTable.get("udp.port"):add_for_decode_as(proto)
DissectorTable.get("rtp.pt"):add(33, proto)
DissectorTable.get("wtap_encap"):add((wtap_encaps or wtap).MPEG_2_TS, proto)
