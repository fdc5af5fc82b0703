-- Wireshark dissector for ROHC packets (RFC 5795) with the profiles of thinair, 0x0181 `coap` and 0x0182 `dtls`, as specified
-- in docs/coap-profile.md and docs/dtls-profile.md. Packets of other profiles go to Wireshark's own dissector.
--
-- A packet is read with the context that the packets before it have left. What would need a context that was not
-- seen is not guessed: it stays undissected, and expert information says why. CRCs of IR and co_common are
-- checked, and only packets that pass change a context; CRC and CHECK of the smaller formats cover headers that are
-- not rebuilt here, so those packets are taken for right.
--
-- Runs with Lua 5.1 to 5.4: no operators on bits.

local proto = Proto("rohc_coap", "ROHC, CoAP profile")

proto.prefs.large_cids = Pref.bool(
    "Large CIDs", false, "The channel has CIDs of one or two octets behind the first octet (LARGE_CIDS)"
)
proto.prefs.others = Pref.bool(
    "Hand over other profiles", true, "Wireshark's own ROHC dissector shows packets of other profiles"
)

local COAP = 0x181
local DTLS = 0x182
-- IR packets have their low octets.
local OWN = { [COAP % 256] = COAP, [DTLS % 256] = DTLS }

-- What the numbers mean.

local PROFILES = { [0] = "uncompressed", [2] = "udp", [4] = "ip", [COAP] = "coap", [DTLS] = "dtls" }
local TYPES = { [0] = "CON", [1] = "NON", [2] = "ACK", [3] = "RST" }
local CODES = {
    [0] = "0.00 Empty", [1] = "0.01 GET", [2] = "0.02 POST", [3] = "0.03 PUT", [4] = "0.04 DELETE",
    [5] = "0.05 FETCH", [6] = "0.06 PATCH", [7] = "0.07 iPATCH", [65] = "2.01 Created", [66] = "2.02 Deleted",
    [67] = "2.03 Valid", [68] = "2.04 Changed", [69] = "2.05 Content", [95] = "2.31 Continue",
    [128] = "4.00 Bad Request", [129] = "4.01 Unauthorized", [130] = "4.02 Bad Option", [131] = "4.03 Forbidden",
    [132] = "4.04 Not Found", [133] = "4.05 Method Not Allowed", [134] = "4.06 Not Acceptable",
    [136] = "4.08 Request Entity Incomplete", [137] = "4.09 Conflict", [140] = "4.12 Precondition Failed",
    [141] = "4.13 Request Entity Too Large", [143] = "4.15 Unsupported Content-Format",
    [150] = "4.22 Unprocessable Entity", [157] = "4.29 Too Many Requests", [160] = "5.00 Internal Server Error",
    [161] = "5.01 Not Implemented", [162] = "5.02 Bad Gateway", [163] = "5.03 Service Unavailable",
    [164] = "5.04 Gateway Timeout", [165] = "5.05 Proxying Not Supported", [168] = "5.08 Hop Limit Reached",
}
local OPTIONS = {
    [1] = "If-Match", [3] = "Uri-Host", [4] = "ETag", [5] = "If-None-Match", [6] = "Observe", [7] = "Uri-Port",
    [8] = "Location-Path", [9] = "OSCORE", [11] = "Uri-Path", [12] = "Content-Format", [14] = "Max-Age",
    [15] = "Uri-Query", [16] = "Hop-Limit", [17] = "Accept", [19] = "Q-Block1", [20] = "Location-Query",
    [23] = "Block2", [27] = "Block1", [28] = "Size2", [31] = "Q-Block2", [35] = "Proxy-Uri", [39] = "Proxy-Scheme",
    [60] = "Size1", [252] = "Echo", [258] = "No-Response", [292] = "Request-Tag",
}
local TEXT = { [3] = true, [8] = true, [11] = true, [15] = true, [20] = true, [35] = true, [39] = true }
local UINT = { [6] = true, [7] = true, [12] = true, [14] = true, [16] = true, [17] = true, [28] = true, [60] = true, [258] = true }
local BLOCK = { [19] = true, [23] = true, [27] = true, [31] = true }
local OBSERVE = 6

-- Largest distance of MSNs by which packets are late: section 9.4.
local MOST_LATE = 8

-- Control fields of profile 0x0181, and the classes of its dynamic options.
local ZERO, CARRIED, ELIDED, RAW = 0, 1, 2, 3
local CHECKSUMS = { [ZERO] = "zero", [CARRIED] = "carried", [ELIDED] = "elided", [RAW] = "raw" }
local ID_COUNTED, ID_LSB, ID_IRREGULAR = 1, 2, 3
local IP_IDS = { [0] = "constant", [ID_COUNTED] = "counted", [ID_LSB] = "LSB", [ID_IRREGULAR] = "irregular" }
local PORT_SOURCE, PORT_DESTINATION, PORT_IN_EACH = 1, 2, 3
local PORTS = {
    [0] = "fixed", [PORT_SOURCE] = "source", [PORT_DESTINATION] = "destination", [PORT_IN_EACH] = "source, in each packet",
}
local MID_COUNTED, MID_OF_REQUEST, MID_IRREGULAR = 0, 1, 2
local MESSAGE_IDS = { [MID_COUNTED] = "counted", [MID_OF_REQUEST] = "of the request", [MID_IRREGULAR] = "irregular" }
local TOKEN_STATIC, TOKEN_COUNTED_UINT, TOKEN_COUNTED, TOKEN_OF_REQUEST, TOKEN_IRREGULAR = 0, 1, 2, 3, 4
local TOKENS = {
    [TOKEN_STATIC] = "static", [TOKEN_COUNTED_UINT] = "counted, shortest uint", [TOKEN_COUNTED] = "counted",
    [TOKEN_OF_REQUEST] = "of the request", [TOKEN_IRREGULAR] = "irregular",
}
local STATIC, COUNTED, LSB, STEP, COUNTED_BLOCK, BLOCK_OF_REQUEST, PARTIAL_IV, IRREGULAR, VARIABLE, PREFIX = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
local CLASSES = {
    [STATIC] = "static", [COUNTED] = "counted", [LSB] = "LSB", [STEP] = "step", [COUNTED_BLOCK] = "block",
    [BLOCK_OF_REQUEST] = "block of the request", [PARTIAL_IV] = "Partial IV", [IRREGULAR] = "irregular",
    [VARIABLE] = "variable", [PREFIX] = "prefix",
}
local MAX_DYNAMIC, MAX_OUTLINE, REFERENCES = 4, 112, 3

local ACKS = { [0] = "ACK", [1] = "NACK", [2] = "STATIC-NACK", [3] = "reserved" }
local MODES = { [0] = "none", [1] = "U", [2] = "O", [3] = "R" }
local FEEDBACK_OPTIONS = {
    [1] = "CRC", [2] = "REJECT", [3] = "SN-NOT-VALID", [4] = "SN", [5] = "CLOCK", [6] = "JITTER", [7] = "LOSS",
    [9] = "CONTEXT_MEMORY",
}

-- Fields.

local F = {}
local function field(kind, name, title, ...)
    F[name] = ProtoField[kind]("rohc_coap." .. name, title, ...)
end
field("bytes", "padding", "Padding")
field("uint16", "cid", "CID")
field("uint16", "profile", "Profile", base.HEX, PROFILES)
field("string", "format", "Format")
field("bytes", "segment", "Segment")
field("uint32", "msn", "MSN")
field("uint8", "msn_bits", "Bits of the MSN that are sent")
field("uint32", "msn_nearest", "MSN, nearest to the last")
field("uint8", "crc", "CRC", base.HEX)
field("uint8", "control_crc", "CRC of the control fields", base.HEX)
field("string", "crc_status", "CRC status")
field("uint16", "check", "CHECK", base.HEX)
field("uint8", "template", "Template")
field("bool", "template_from_context", "Template as in the packet before")
for _, flag in ipairs { "ip_id", "message_id", "request", "token", "numbers", "type", "msn", "port" } do
    field("bool", "carries_" .. flag, "Carries " .. flag)
end
field("bool", "carries", "F: carries fields that have changed")
field("bool", "has_ip", "Has IP fields")
field("bool", "has_control", "Has control fields")
field("bool", "has_definition", "Has the definition of the template")
field("bool", "keep", "Keep the other templates")
field("uint8", "version", "IP version")
field("ipv4", "ipv4_source", "Source Address")
field("ipv4", "ipv4_destination", "Destination Address")
field("ipv6", "ipv6_source", "Source Address")
field("ipv6", "ipv6_destination", "Destination Address")
field("uint16", "source_port", "Source Port")
field("uint16", "destination_port", "Destination Port")
field("uint8", "tos", "TOS or Traffic Class", base.HEX)
field("uint8", "ttl", "TTL or Hop Limit")
field("bool", "df", "DF")
field("uint32", "flow_label", "Flow Label", base.HEX)
field("uint8", "checksum_mode", "UDP checksum", base.DEC, CHECKSUMS)
field("uint8", "ip_id_mode", "IP-ID", base.DEC, IP_IDS)
field("bool", "switching", "Switching: short formats name the template")
field("bool", "pt_0", "pt_0 is in use")
field("uint8", "port_mode", "Port that changes", base.DEC, PORTS)
field("uint8", "base", "Base")
field("bool", "differs", "F: differs from the base")
field("uint8", "header_crc", "CRC of the headers", base.HEX)
for _, flag in ipairs { "source_port", "destination_port", "source", "destination", "template" } do
    field("bool", "differs_" .. flag, "Another " .. flag)
end
field("uint8", "message_id_mode", "Message ID mode", base.DEC, MESSAGE_IDS)
field("uint8", "token_mode", "Token mode", base.DEC, TOKENS)
field("bool", "names", "Names the request in every packet")
field("uint8", "tkl", "TKL")
field("uint8", "outline_length", "Outline length")
field("uint16", "option", "Option Number", base.DEC, OPTIONS)
field("uint8", "class", "Class", base.DEC, CLASSES)
field("bytes", "parameters", "Parameters of the class")
field("bytes", "option_value", "Option Value")
field("uint8", "option_length", "Length of the option")
field("uint32", "number", "Number")
field("uint32", "number_lsb", "Low bits of the number")
field("uint8", "type", "T", base.DEC, TYPES)
field("uint8", "code", "Code", base.DEC, CODES)
field("uint16", "ip_id", "IP-ID", base.HEX)
field("uint8", "ip_id_lsb", "Low bits of the IP-ID", base.HEX)
field("uint16", "port", "Port of the client")
field("uint16", "message_id", "Message ID")
field("uint16", "request_msn", "MSN of the request")
field("uint8", "request_msn_lsb", "Low bits of the MSN of the request")
field("string", "token", "Token")
field("uint16", "udp_checksum", "UDP Checksum", base.HEX)
-- Profile 0x0182.
field("uint8", "dtls_ip_id_mode", "IP-ID", base.DEC, { [0] = "constant", [1] = "counted", [2] = "irregular", [3] = "irregular" })
for _, flag in ipairs { "record", "number", "length" } do
    field("bool", "dtls_carries_" .. flag, "Carries " .. flag)
end
field("bool", "has_msn", "Has the MSN")
field("bool", "has_dynamic", "Has the dynamic part of the IP header")
field("uint16", "base_cid", "CID of the base")
field("uint16", "context_crc", "CRC of the context", base.HEX)
field("uint8", "record_type", "Content type, or first octet of a unified header")
field("bool", "version_1_0", "DTLS 1.0")
field("uint8", "nonce_source", "Nonce", base.DEC, { [0] = "none", [1] = "number", [2] = "carried", [3] = "difference" })
field("uint8", "cid_length", "Length of the connection ID")
field("bytes", "connection_id", "Connection ID")
field("bool", "wide", "All bits of epoch and sequence number")
field("uint16", "epoch", "Epoch")
field("uint64", "sequence_number", "Sequence number")
field("bytes", "nonce", "Nonce")
field("uint16", "record_length", "Length of the first record")
field("uint16", "encrypted_number", "Encrypted sequence number", base.HEX)
field("bytes", "payload", "Payload")
field("bytes", "undissected", "Not dissected")
field("uint8", "mode", "Mode", base.DEC, MODES)
-- Feedback.
field("none", "feedback", "Feedback element")
field("string", "feedback_form", "Form")
field("uint8", "acktype", "Acktype", base.DEC, ACKS)
field("uint16", "acked", "SN or MSN of feedback")
field("uint8", "feedback_option", "Feedback option", base.DEC, FEEDBACK_OPTIONS)
field("bytes", "feedback_value", "Value")
for _, one in pairs(F) do
    proto.fields[#proto.fields + 1] = one
end

local E = {
    missing = ProtoExpert.new("rohc_coap.missing", "State is missing", expert.group.UNDECODED, expert.severity.NOTE),
    malformed = ProtoExpert.new("rohc_coap.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR),
    crc = ProtoExpert.new("rohc_coap.bad_crc", "CRC does not match", expert.group.CHECKSUM, expert.severity.ERROR),
}
proto.experts = { E.missing, E.malformed, E.crc }

-- Octets and bits.

-- Why the dissection of a packet ends early: thrown as a table, so that it is told from an error of this script.
local function stop(kind, why)
    error({ kind = kind, why = why }, 0)
end

-- Reads bits of a header and adds them to a tree. Large CIDs stand behind the first octet: `rest` is where it goes on.
local Cursor = {}
Cursor.__index = Cursor

function Cursor.new(tvb, first, rest, tree)
    return setmetatable({ tvb = tvb, raw = tvb:raw(), first = first, rest = rest, bit = 0, tree = tree }, Cursor)
end

-- Where the octet `n` of the header is in the packet.
function Cursor:offset(n)
    return n == 0 and self.first or self.rest + n - 1
end

-- Where the next octet is in the packet.
function Cursor:position()
    return self:offset(math.floor(self.bit / 8))
end

function Cursor:left()
    return #self.raw - self:position()
end

-- The next bits, and the octets that they are in.
function Cursor:take(width)
    local from = math.floor(self.bit / 8)
    local to = math.floor((self.bit + width - 1) / 8)
    if self:offset(to) >= #self.raw then
        stop("malformed", "the packet ends within its header")
    end
    local value = 0
    for n = from, to do
        value = value * 256 + self.raw:byte(self:offset(n) + 1)
    end
    local behind = (to + 1) * 8 - (self.bit + width)
    self.bit = self.bit + width
    value = math.floor(math.floor(value / 2 ^ behind) % 2 ^ width)
    return value, self.tvb:range(self:offset(from), to - from + 1)
end

function Cursor:num(name, width)
    local value, range = self:take(width)
    self.tree:add(F[name], range, value)
    return value
end

function Cursor:flag(name)
    local value, range = self:take(1)
    self.tree:add(F[name], range, value == 1)
    return value == 1
end

function Cursor:reserved(width)
    self:take(width)
end

-- Whole octets, as a string.
function Cursor:octets(len)
    if len > self:left() then
        stop("malformed", "the packet ends within its header")
    end
    local at = self:position()
    self.bit = self.bit + 8 * len
    return self.raw:sub(at + 1, at + len), self.tvb:range(at, len)
end

function Cursor:bytes(name, len)
    if len == 0 then
        return ""
    end
    local octets, range = self:octets(len)
    self.tree:add(F[name], range)
    return octets
end

-- A subtree for what comes next.
function Cursor:subtree(title)
    if self:left() == 0 then
        return self.tree:add(proto, title)
    end
    return self.tree:add(proto, self.tvb:range(self:position()), title)
end

-- Runs `read` with fields going to a subtree.
function Cursor:within(title, read)
    local outer, from = self.tree, self:position()
    self.tree = self:subtree(title)
    read(self.tree)
    self.tree:set_len(self:position() - from)
    self.tree = outer
end

-- A field that no octets stand for: the context tells it.
local function generated(tree, name, value)
    return tree:add(F[name], value):set_generated()
end

local function xor(a, b)
    local sum, weight = 0, 1
    for _ = 1, 8 do
        if a % 2 ~= b % 2 then
            sum = sum + weight
        end
        a, b, weight = math.floor(a / 2), math.floor(b / 2), weight * 2
    end
    return sum
end

-- CRC-3 and CRC-8 of RFC 3095, section 5.9.1, least significant bit first.
local function crc_of(octets, polynomial, start)
    local crc = start
    for i = 1, #octets do
        crc = xor(crc, octets:byte(i))
        for _ = 1, 8 do
            local carry = crc % 2
            crc = math.floor(crc / 2)
            if carry == 1 then
                crc = xor(crc, polynomial)
            end
        end
    end
    return crc
end

local function crc3(octets)
    return crc_of(octets, 0x6, 0x7)
end

local function crc8(octets)
    return crc_of(octets, 0xE0, 0xFF)
end

local function hex(octets)
    return (octets:gsub(".", function(octet)
        return string.format("%02x", octet:byte())
    end))
end

local function uint(octets)
    local value = 0
    for i = 1, #octets do
        value = value * 256 + octets:byte(i)
    end
    return value
end

local function read_token(c, len)
    if len == 0 then
        return ""
    end
    local octets, range = c:octets(len)
    c.tree:add(F.token, range, hex(octets))
    return octets
end

local function copy(from)
    local to = {}
    for key, value in pairs(from or {}) do
        to[key] = value
    end
    return to
end

-- Options and outlines: sections 5 and 6.12 of docs/coap-profile.md; RFC 7252, section 3.1.

local function extended(octets, at, nibble)
    if nibble < 13 then
        return nibble, at
    end
    local len = nibble - 12
    if nibble == 15 or at + len - 1 > #octets then
        return nil
    end
    return uint(octets:sub(at, at + len - 1)) + (len == 1 and 13 or 269), at + len
end

-- Parameters that a class can have.
local function is_class(class, parameters)
    local first = parameters:byte(1)
    if class == COUNTED or class == LSB or class == VARIABLE then
        return not first
    elseif class == STEP or class == IRREGULAR then
        return #parameters == 1
    elseif class == COUNTED_BLOCK or class == BLOCK_OF_REQUEST then
        return #parameters == 1 and first < 16
    elseif class == PARTIAL_IV then
        return first and first % 8 == 0
    elseif class == PREFIX then
        return first and first > #parameters - 1
    end
    return class == STATIC
end

-- The entries of an outline, or nil if it is none. Options of a message are an outline without holes.
local function entries_of(outline)
    local entries, at, number, dynamic = {}, 1, 0, 0
    while at <= #outline do
        local entry = { at = at - 1, class = STATIC }
        local first = outline:byte(at)
        if first >= 0xF0 then
            entry.class = first - 0xF0
            at, dynamic = at + 1, dynamic + 1
            first = outline:byte(at)
        end
        if not first then
            return nil
        end
        local delta, length
        delta, at = extended(outline, at + 1, math.floor(first / 16))
        if not delta then
            return nil
        end
        length, at = extended(outline, at, first % 16)
        if not length or at + length - 1 > #outline then
            return nil
        end
        entry.value = outline:sub(at, at + length - 1)
        at, number = at + length, number + delta
        if number > 65535 or not is_class(entry.class, entry.value) then
            return nil
        end
        entry.number, entry.len = number, at - 1 - entry.at
        entries[#entries + 1] = entry
    end
    return dynamic <= MAX_DYNAMIC and entries or nil
end

local function option_name(number)
    return OPTIONS[number] or ("Option " .. number)
end

-- An option value as people read it.
local function value_text(number, value)
    if TEXT[number] then
        return '"' .. value:gsub("[^%g ]", ".") .. '"'
    elseif UINT[number] and #value <= 4 then
        return tostring(uint(value))
    elseif BLOCK[number] and #value <= 3 then
        local all = uint(value)
        return string.format("%d/%d/%d", math.floor(all / 16), math.floor(all / 8) % 2, 16 * 2 ^ (all % 8))
    end
    return #value == 0 and "empty" or hex(value)
end

local function is_number(class)
    return class >= COUNTED and class <= PARTIAL_IV
end

-- Whether a template keeps an anchor for the class: the value minus the MSN.
local function has_anchor(class)
    return class == COUNTED or class == COUNTED_BLOCK or class == PARTIAL_IV
end

local function modulus(entry)
    return entry.class == COUNTED_BLOCK and 2 ^ 20 or entry.number == OBSERVE and 2 ^ 24 or 2 ^ 32
end

-- The value whose low bits are `bits`, counted from `below` under `last`.
local function near(bits, width, last, below)
    local start = last - below
    return math.floor(start + (bits - start) % 2 ^ width)
end

local function add_entries(tree, tvb, at, entries)
    for _, entry in ipairs(entries) do
        local range = tvb:range(at + entry.at, entry.len)
        local title = option_name(entry.number) .. ": "
        title = title .. (entry.class == STATIC and value_text(entry.number, entry.value) or CLASSES[entry.class])
        local sub = tree:add(proto, range, title)
        sub:add(F.option, range, entry.number)
        sub:add(F.class, range, entry.class)
        if #entry.value > 0 then
            local value = tvb:range(at + entry.at + entry.len - #entry.value, #entry.value)
            sub:add(entry.class == STATIC and F.option_value or F.parameters, value)
        end
    end
end

-- Profile 0x0181: what is kept of a flow is `context`: `path` with the IP and UDP fields and the control fields,
-- `templates` by number, `current` and `msn` of the last packet, the anchors `own` and `echoed` of Message IDs,
-- `request` of names of requests and the last one that was `named`, and `last`, the last number that classes refer to.

local function read_path_addresses(c, path)
    local len = path.v6 and 16 or 4
    local kind = path.v6 and "ipv6" or "ipv4"
    path.source = c:bytes(kind .. "_source", len)
    path.destination = c:bytes(kind .. "_destination", len)
    path.source_port = c:num("source_port", 16)
    path.destination_port = c:num("destination_port", 16)
end

local function read_ip(c, path)
    path.tos = c:num("tos", 8)
    path.ttl = c:num("ttl", 8)
    if path.v6 then
        c:reserved(4)
        path.flow_label = c:num("flow_label", 20)
    else
        path.df = c:flag("df")
        c:reserved(7)
    end
end

local function read_control(c, path)
    path.checksum = c:num("checksum_mode", 2)
    path.ip_id_mode = c:num("ip_id_mode", 2)
    path.switching = c:flag("switching")
    path.pt_0 = c:flag("pt_0")
    path.port_mode = c:num("port_mode", 2)
end

local function read_definition(c)
    local t = { anchors = {} }
    c:within("Template", function(tree)
        t.type = c:num("type", 2)
        t.message_id_mode = c:num("message_id_mode", 2)
        t.tkl = c:num("tkl", 4)
        t.code = c:num("code", 8)
        t.token_mode = c:num("token_mode", 3)
        t.names = c:flag("names")
        c:reserved(4)
        if t.tkl > 8 or t.message_id_mode > MID_IRREGULAR or t.token_mode > TOKEN_IRREGULAR then
            stop("malformed", "a template with a reserved value")
        end
        if t.token_mode == TOKEN_STATIC then
            t.token = read_token(c, t.tkl)
        end
        if t.token_mode == TOKEN_COUNTED_UINT or t.token_mode == TOKEN_OF_REQUEST then
            -- Its tokens have no length of their own.
            t.tkl = 0
        end
        t.len = c:num("outline_length", 8)
        local at = c:position()
        local outline = c:octets(t.len)
        t.entries = entries_of(outline)
        t.key = table.concat({ t.type, t.message_id_mode, t.code, t.token_mode, t.names and 1 or 0, t.token or "", outline }, ",")
        if not t.entries or t.len > MAX_OUTLINE then
            stop("malformed", "octets that are no outline")
        end
        add_entries(tree, c.tvb, at, t.entries)
    end)
    t.names_request = t.message_id_mode == MID_OF_REQUEST or t.token_mode == TOKEN_OF_REQUEST
    for _, entry in ipairs(t.entries) do
        t.names_request = t.names_request or entry.class == BLOCK_OF_REQUEST
    end
    return t
end

-- Dynamic part of the IP header, control fields and definition, as far as the packet has them.
local function read_body(c, x, path)
    c:reserved(4)
    x.template = c:num("template", 4)
    x.msn_bits, x.msn_width = c:num("msn", 16), 16
    if x.has_ip then
        if path.v6 == nil then
            stop("missing", "the IP version is not known: the packet that tells it was not understood")
        end
        c:within("IP", function() read_ip(c, path) end)
    end
    if x.has_control then
        c:within("Control fields", function() read_control(c, path) end)
    end
    if x.has_definition then
        x.definition = read_definition(c)
    end
    for _, name in ipairs { "ip_id", "message_id", "request", "token", "numbers", "type", "msn" } do
        x.carries[name] = true
    end
end

-- CRC-3 over the control fields that a packet leads to.
local function control_crc(path, number, t)
    local modes = path.checksum * 64 + path.ip_id_mode * 16 + (path.switching and 8 or 0) + (path.pt_0 and 4 or 0) + path.port_mode
    local head = t.type * 64 + t.message_id_mode * 16 + t.tkl
    return crc3(string.char(modes, number, head, t.code, t.token_mode * 2 + (t.names and 1 or 0), t.len))
end

-- SDVL, RFC 5795, section 5.3.2.
local function read_sdvl(c, tree)
    local first = c.raw:byte(c:position() + 1) or 0
    local octets = first < 0x80 and 1 or first < 0xC0 and 2 or first < 0xE0 and 3 or 4
    local prefix = math.min(octets, 3)
    c:take(prefix)
    local value, range = c:take(8 * octets - prefix)
    tree:add(F.number, range, value)
    return value
end

-- A token that counts: the anchor plus the MSN, in big-endian octets; shortest if `len` is nil.
local function counted_token(anchor, msn, len)
    local octets, carry = {}, msn
    for i = 8, 1, -1 do
        local sum = anchor[i] + carry % 256
        carry = math.floor(carry / 256) + math.floor(sum / 256)
        octets[i] = string.char(math.floor(sum % 256))
    end
    local all = table.concat(octets)
    return len and all:sub(9 - len) or (all:gsub("^%z+", ""))
end

-- The anchor of a token: its octets minus the MSN.
local function token_anchor(token, msn)
    local octets, borrow = {}, msn
    token = string.rep("\0", 8 - #token) .. token
    for i = 8, 1, -1 do
        local difference = token:byte(i) - borrow % 256
        borrow = math.floor(borrow / 256) + (difference < 0 and 1 or 0)
        octets[i] = math.floor(difference % 256)
    end
    return octets
end

local function is_own(message_type)
    return message_type < 2
end

-- One option of a message: what the packet carries, and what the context says of the rest.
local function read_option(c, tree, entry, x, context, t, state)
    local sub = c:subtree(option_name(entry.number) .. ", " .. CLASSES[entry.class])
    generated(sub, "option", entry.number)
    generated(sub, "class", entry.class)
    local from = c:position()
    local number, value
    c.tree = sub
    if entry.class == IRREGULAR then
        value = c:bytes("option_value", entry.value:byte(1))
    elseif entry.class == PREFIX then
        local prefix = entry.value:sub(2)
        value = prefix .. c:bytes("option_value", entry.value:byte(1) - #prefix)
    elseif entry.class == VARIABLE then
        value = c:bytes("option_value", c:num("option_length", 8))
    elseif x.carries.numbers then
        number = read_sdvl(c, sub)
    elseif entry.class == LSB then
        local bits = c:num("number_lsb", 8)
        number = context.last and near(bits, 8, context.last, 8)
    elseif entry.class == STEP then
        number = context.last and context.last + entry.value:byte(1)
    elseif has_anchor(entry.class) then
        local anchor = t.anchors[state.reference + 1]
        number = anchor and x.msn and anchor + x.msn
    end
    c.tree = tree
    if has_anchor(entry.class) then
        state.reference = state.reference + 1
    end
    if number then
        number = math.floor(number % modulus(entry))
        if not x.carries.numbers then
            generated(sub, "number", number)
        end
        if entry.class == COUNTED_BLOCK or entry.class == BLOCK_OF_REQUEST then
            local low = entry.value:byte(1)
            sub:append_text(string.format(": %d/%d/%d", number, math.floor(low / 8), 16 * 2 ^ (low % 8)))
        else
            sub:append_text(string.format(": %d", number))
        end
    elseif value then
        sub:append_text(": " .. value_text(entry.number, value))
    end
    sub:set_len(c:position() - from)
    return number
end

-- The chain behind every base header.
local function read_chain(c, x, context, t, has_check)
    local path, carries = context.path, x.carries
    if carries.type then
        c:reserved(6)
        x.type = c:num("type", 2)
    else
        x.type = t.type
        generated(c.tree, "type", x.type)
    end
    generated(c.tree, "code", t.code)
    if carries.port or path.port_mode == PORT_IN_EACH and not carries.checksum then
        x.port = c:num("port", 16)
    end
    if path.v6 then
        if path.ip_id_mode == ID_IRREGULAR then
            c:reserved(4)
            c:num("flow_label", 20)
        end
    else
        if carries.ip_id or path.ip_id_mode == ID_IRREGULAR then
            c:num("ip_id", 16)
        elseif path.ip_id_mode == ID_LSB then
            c:num("ip_id_lsb", 8)
        end
    end
    if carries.message_id or t.message_id_mode == MID_IRREGULAR then
        x.message_id = c:num("message_id", 16)
    elseif t.message_id_mode == MID_COUNTED then
        local anchor = context[is_own(x.type) and "own" or "echoed"]
        if anchor and x.msn then
            x.message_id = math.floor((anchor + x.msn) % 65536)
            generated(c.tree, "message_id", x.message_id)
        end
    end
    if carries.request and t.names_request then
        x.request = c:num("request_msn", 16)
    elseif t.names or t.names_request then
        if t.names then
            local low = c:num("request_msn_lsb", 8)
            x.request = context.named and math.floor(near(low, 8, context.named, 8) % 65536)
        elseif context.request and x.msn then
            x.request = math.floor((context.request + x.msn) % 65536)
        end
        if x.request then
            generated(c.tree, "request_msn", x.request)
        end
    end
    if t.token_mode == TOKEN_STATIC then
        x.token = t.token
    elseif t.token_mode == TOKEN_IRREGULAR then
        x.token, x.token_sent = read_token(c, t.tkl), true
    elseif carries.token then
        local len = c:num("tkl", 8)
        if len > 8 or t.token_mode == TOKEN_COUNTED and len ~= t.tkl then
            stop("malformed", "a token of another length than its template allows")
        end
        x.token, x.token_sent = read_token(c, len), true
    elseif t.token_anchor and x.msn then
        local len = t.token_mode == TOKEN_COUNTED and t.token_len or nil
        x.token = counted_token(t.token_anchor, x.msn, len)
    end
    if x.token and #x.token > 0 and not x.token_sent then
        generated(c.tree, "token", hex(x.token))
    end
    x.numbers = {}
    local state = { reference = 0 }
    for i, entry in ipairs(t.entries) do
        if entry.class == STATIC then
            local sub = c.tree:add(proto, option_name(entry.number) .. ": " .. value_text(entry.number, entry.value))
            sub:set_generated()
            generated(sub, "option", entry.number)
            generated(sub, "class", STATIC)
        else
            x.numbers[i] = read_option(c, c.tree, entry, x, context, t, state)
        end
    end
    if (path.checksum == RAW or path.checksum == CARRIED) and not has_check or path.checksum == ELIDED and carries.checksum then
        c:num("udp_checksum", 16)
    end
end

-- The context behind a packet that is taken for right.
-- Name of the field that has the port of the client.
local function client_port(path)
    return path.port_mode == PORT_DESTINATION and "destination_port" or "source_port"
end

-- Whether the MSN of a packet is behind the last one.
local function goes_back(x, context)
    return context.msn and x.msn and (x.msn - context.msn) % 2 ^ 32 >= 2 ^ 31
end

local function accepted(context, x, t)
    local after = copy(context)
    after.current = x.template
    after.msn = x.msn
    if not x.msn then
        return after
    end
    -- The port of a packet that goes back changes nothing.
    if x.port and not goes_back(x, context) then
        after.path = copy(context.path)
        after.path[client_port(context.path)] = x.port
    end
    if x.request and t.names_request then
        after.named, after.request = x.request, x.request - x.msn
    end
    if x.carries.message_id and t.message_id_mode == MID_COUNTED then
        after[is_own(x.type) and "own" or "echoed"] = x.message_id - x.msn
    end
    local changed = copy(t)
    if x.carries.token and (t.token_mode == TOKEN_COUNTED or t.token_mode == TOKEN_COUNTED_UINT) then
        changed.token_anchor, changed.token_len = token_anchor(x.token, x.msn), #x.token
    end
    if x.carries.numbers then
        changed.anchors = {}
    end
    for i, entry in ipairs(t.entries) do
        if x.carries.numbers and has_anchor(entry.class) and #changed.anchors < REFERENCES and x.numbers[i] then
            changed.anchors[#changed.anchors + 1] = x.numbers[i] - x.msn
        end
        if is_number(entry.class) and entry.number == OBSERVE then
            after.last = x.numbers[i]
        end
    end
    after.templates = copy(context.templates)
    after.templates[x.template] = changed
    return after
end

-- How far below the last MSN the interval begins that `width` bits can mean.
local function msn_below(width)
    return width < 4 and 0 or width == 4 and 2 or width < 16 and 8 or 32768
end

-- Whether a long format comes behind others with what a context no longer has: section 9.4. Then it changes nothing.
local function is_late(x, path, context)
    local behind = context.msn and x.msn and (context.msn - x.msn) % 2 ^ 32 or 0
    if behind < 1 or behind > MOST_LATE then
        return false
    end
    for key, value in pairs(path) do
        if key ~= client_port(path) and context.path[key] ~= value then
            return true
        end
    end
    local known = context.templates[x.template]
    return known and x.definition and known.key ~= x.definition.key
end

local function resolve_msn(c, x, context)
    c.tree:add(F.msn_bits, x.msn_width):set_generated()
    if x.msn_is_whole then
        x.msn = x.msn_bits
    elseif context.msn then
        x.msn = math.floor(near(x.msn_bits, x.msn_width, context.msn, msn_below(x.msn_width)) % 2 ^ 32)
    end
    if x.msn then
        generated(c.tree, "msn_nearest", x.msn)
    end
end

-- Compares a CRC-8 over the header up to the payload, CID included and the CRC itself taken as zero.
local function verify_crc8(c, start, crc_at, read)
    local before, behind = c.raw:sub(start + 1, crc_at), c.raw:sub(crc_at + 2, c:position())
    local is_right = crc8(before .. "\0" .. behind) == read
    generated(c.tree, "crc_status", is_right and "right" or "wrong")
    if not is_right then
        stop("crc", "CRC-8 over the header is wrong")
    end
end

local function read_profile(c)
    local _, range = c:take(8)
    c.tree:add(F.profile, range, COAP)
end

local function read_ir(c, context, out, start)
    c:take(8)
    read_profile(c)
    local crc_at = c:position()
    local crc = c:num("crc", 8)
    local x = { carries = { checksum = true }, has_ip = true, has_control = true, has_definition = true }
    local path = {}
    c:within("IP and UDP", function()
        local v6, range = c:take(1)
        path.v6 = v6 == 1
        c.tree:add(F.version, range, path.v6 and 6 or 4)
        x.keep = c:flag("keep")
        c:reserved(6)
        read_path_addresses(c, path)
    end)
    read_body(c, x, path)
    local known = context.path or {}
    local behind = context.msn and (context.msn - x.msn_bits) % 2 ^ 16
    local keeps = (x.keep or behind and behind <= MOST_LATE) and known.source == path.source and known.destination == path.destination
        and (path.port_mode == PORT_SOURCE or path.port_mode == PORT_IN_EACH or known.source_port == path.source_port)
        and (path.port_mode == PORT_DESTINATION or known.destination_port == path.destination_port)
    local fresh = { profile = COAP, templates = {}, own = 0, echoed = 0, request = 0, named = 0, last = 0 }
    local next_context = keeps and copy(context) or fresh
    next_context.path = path
    x.msn_is_whole = not keeps
    resolve_msn(c, x, next_context)
    read_chain(c, x, next_context, x.definition, false)
    verify_crc8(c, start, crc_at, crc)
    out.x, out.t = x, x.definition
    if keeps and goes_back(x, context) then
        next_context.path = copy(path)
        next_context.path[client_port(path)] = known[client_port(path)]
    end
    local is_old = keeps and (not x.keep and behind > 0 or is_late(x, path, context))
    out.after = is_old and context or accepted(next_context, x, x.definition)
end

-- Without its base an IR-CR packet tells only how it differs, and its CRC cannot be checked. The flow it begins has no
-- known state.
local function read_ir_cr(c, out)
    out.after = { profile = COAP, templates = {} }
    c:take(8)
    read_profile(c)
    c:num("crc", 8)
    local number = c:num("base", 8)
    local differs = c:flag("differs")
    c:num("header_crc", 7)
    c:num("msn", 16)
    if differs then
        local has = {}
        for _, name in ipairs { "source_port", "destination_port", "source", "destination", "template" } do
            has[name] = c:flag("differs_" .. name)
        end
        for _, name in ipairs { "message_id", "token", "numbers" } do
            c:flag("carries_" .. name)
        end
        if has.source_port then
            c:num("source_port", 16)
        end
        if has.destination_port then
            c:num("destination_port", 16)
        end
    end
    stop("missing", "base " .. number .. " is provisioned at both ends and not known here")
end

-- The format of a packet of a context, by its first octet.
local function format_of(first, path)
    if first == 0xFA then
        return "co_common"
    elseif first == 0xFB then
        return "co_repair"
    end
    local is_small = first < 0xC0
    if not is_small and first >= 0xE0 then
        return nil
    end
    if not path then
        stop("missing", "the control fields are not known: the packet that tells them was not understood")
    end
    local carried = path.checksum == CARRIED
    if not is_small then
        return carried and "pt_2c" or "pt_2"
    elseif path.switching then
        return carried and "pt_1tc" or "pt_1t"
    elseif first >= 0x80 then
        return "pt_1"
    end
    return carried and "pt_0c" or path.pt_0 and "pt_0" or nil
end

local HAS_CHECK = { pt_0c = true, pt_1tc = true, pt_2c = true }

local function read_common(c, x, format, path)
    c:take(8)
    if format == "co_common" then
        x.has_ip, x.has_control, x.has_definition = c:flag("has_ip"), c:flag("has_control"), c:flag("has_definition")
        x.carries.port = c:flag("carries_port")
        c:reserved(1)
    else
        x.has_ip, x.has_control, x.has_definition = true, true, true
        c:reserved(3)
        x.carries.port = c:flag("carries_port")
        c:reserved(1)
    end
    x.control_crc = c:num("control_crc", 3)
    c:reserved(1)
    c:num("crc", 7)
    read_body(c, x, path)
end

local function read_small(c, x, format)
    local function msn(width)
        x.msn_bits, x.msn_width = c:num("msn", width), width
    end
    if format == "pt_0" then
        c:take(1)
        msn(4)
        c:num("crc", 3)
    elseif format == "pt_0c" then
        c:take(1)
        msn(7)
    elseif format == "pt_1" then
        c:take(2)
        msn(6)
        c:num("crc", 8)
    elseif format == "pt_1t" or format == "pt_1tc" then
        x.template = c:num("template", 4)
        msn(4)
        if format == "pt_1t" then
            c:num("crc", 8)
        end
    else
        c:take(3)
        x.template = c:num("template", 4)
        if c:flag("carries") then
            for _, name in ipairs { "ip_id", "message_id", "request", "token", "numbers", "type", "msn", "port" } do
                x.carries[name] = c:flag("carries_" .. name)
            end
        end
        msn(x.carries.msn and 16 or 8)
        if format == "pt_2" then
            c:num("crc", 8)
        end
    end
    if HAS_CHECK[format] then
        c:num("check", 16)
    end
end

local function read_compressed(c, context, out)
    local format = format_of(c.raw:byte(c.first + 1), context.path)
    if not format then
        stop("malformed", "no format of profile 0x0181 begins like this")
    end
    out.format = format
    generated(c.tree, "format", format)
    local x = { carries = {}, template = context.current }
    local next_context = copy(context)
    next_context.path = copy(context.path)
    if format == "co_common" or format == "co_repair" then
        read_common(c, x, format, next_context.path)
    else
        read_small(c, x, format)
    end
    resolve_msn(c, x, context)
    out.x = x
    if not context.path then
        stop("missing", "the IP and UDP fields are not known: the packet that tells them was not understood")
    end
    local t = x.definition or context.templates[x.template]
    if not t then
        stop("missing", "template " .. tostring(x.template) .. " is not known")
    end
    if format == "pt_0" or format == "pt_0c" or format == "pt_1" then
        generated(c.tree, "template", x.template)
        generated(c.tree, "template_from_context", true)
    end
    read_chain(c, x, next_context, t, HAS_CHECK[format])
    if x.control_crc then
        local is_right = control_crc(next_context.path, x.template, t) == x.control_crc
        generated(c.tree, "crc_status", is_right and "right" or "wrong")
        if not is_right then
            stop("crc", "CRC-3 over the control fields is wrong")
        end
    end
    local is_old = x.control_crc and is_late(x, next_context.path, context)
    out.after, out.t = is_old and context or accepted(next_context, x, t), t
end

-- Profile 0x0182: what is kept of a flow is `path` with the version and the control fields, and `kind`, the type of its records.

local DTLS_IRREGULAR = 2
local NONCE_CARRIED = 2

local function read_dtls_control(c, x, path)
    local v6, range = c:take(1)
    path.v6 = v6 == 1
    c.tree:add(F.version, range, path.v6 and 6 or 4)
    path.df = c:flag("df")
    path.checksum = c:num("checksum_mode", 2)
    path.ip_id_mode = c:num("dtls_ip_id_mode", 2)
    x.length = c:flag("dtls_carries_length")
    x.has_msn = c:flag("has_msn")
end

local function read_dtls_ip(c, x, path)
    if not x.is_like_base then
        c:num("tos", 8)
        c:num("ttl", 8)
    end
    if path.v6 and not x.is_like_base then
        c:reserved(4)
        c:num("flow_label", 20)
    end
    if x.has_msn then
        x.msn_bits, x.msn_width = c:num("msn", 16), 16
    end
    x.ip_id, x.record, x.number, x.is_long = true, true, true, true
end

local function read_dtls_chain(c, x, path, kind)
    if not path.v6 and (x.ip_id or path.ip_id_mode >= DTLS_IRREGULAR) then
        c:num("ip_id", 16)
    end
    if x.record then
        kind.first = c:num("record_type", 8)
        c:flag("version_1_0")
        x.nonce = c:num("nonce_source", 2)
        c:bytes("connection_id", c:num("cid_length", 5))
    end
    local is_unified = math.floor(kind.first / 32) == 1
    if x.number and not is_unified then
        if c:flag("wide") then
            c:reserved(7)
            c:num("epoch", 16)
            local octets, range = c:octets(6)
            c.tree:add(F.sequence_number, range, UInt64(uint(octets:sub(3)), uint(octets:sub(1, 2))))
        else
            c:num("epoch", 7)
            local number, range = c:take(16)
            c.tree:add(F.sequence_number, range, UInt64(number))
        end
    end
    if x.record and x.nonce == NONCE_CARRIED then
        c:bytes("nonce", 8)
    end
    if x.length then
        c:num("record_length", 16)
    end
    if is_unified then
        c:num("encrypted_number", math.floor(kind.first / 8) % 2 == 1 and 16 or 8)
    end
    if x.is_long and path.checksum ~= ZERO then
        c:num("udp_checksum", 16)
    end
end

local function dtls_format_of(first, path)
    local is_carried = path.checksum == CARRIED
    if first < 0x80 then
        return is_carried and "pt_0c" or nil
    elseif first < 0xC0 then
        return not is_carried and "pt_1" or nil
    elseif first < 0xE0 then
        return is_carried and "pt_2c" or "pt_2"
    end
    return ({ [0xFB] = "co_repair", [0xFC] = "IR-CR", [0xFD] = "IR" })[first]
end

local function read_dtls(c, context, out, start)
    local first = c.raw:byte(c.first + 1)
    out.format = dtls_format_of(first, context.path or {})
    if not out.format then
        stop("malformed", "no format of profile 0x0182 begins like this")
    end
    generated(c.tree, "format", out.format)
    local x, path, kind = {}, copy(context.path or {}), copy(context.kind or {})
    if out.format == "IR" or out.format == "IR-CR" then
        c:take(8)
        local _, range = c:take(8)
        c.tree:add(F.profile, range, DTLS)
        local crc_at = c:position()
        local crc = c:num("crc", 8)
        read_dtls_control(c, x, path)
        if out.format == "IR" then
            read_path_addresses(c, path)
        else
            x.is_like_base = not c:flag("has_dynamic")
            c:reserved(1)
            c:num("base_cid", 14)
            c:num("context_crc", 16)
            c:num("source_port", 16)
            c:num("destination_port", 16)
        end
        read_dtls_ip(c, x, path)
        read_dtls_chain(c, x, path, kind)
        verify_crc8(c, start, crc_at, crc)
    elseif not context.kind then
        stop("missing", "the IR packet of the flow was not understood")
    elseif out.format == "co_repair" then
        c:take(8)
        c:num("crc", 8)
        read_dtls_control(c, x, path)
        read_dtls_ip(c, x, path)
        read_dtls_chain(c, x, path, kind)
    else
        local width = ({ pt_0c = 7, pt_1 = 6 })[out.format] or 16
        c:take(({ pt_0c = 1, pt_1 = 2 })[out.format] or 3)
        if width == 16 then
            x.ip_id = c:flag("carries_ip_id")
            x.record = c:flag("dtls_carries_record")
            x.number = c:flag("dtls_carries_number")
            x.length = c:flag("dtls_carries_length")
            c:reserved(1)
        end
        x.msn_bits, x.msn_width = c:num("msn", width), width
        if path.checksum == CARRIED then
            c:num("check", 16)
        else
            c:num("crc", 8)
        end
        read_dtls_chain(c, x, path, kind)
    end
    out.x = x
    out.after = { profile = DTLS, path = path, kind = kind }
end

-- Contexts: what each packet changes is kept by the number of its frame, so that frames can be shown in any order.
-- A frame can hold several packets: those of SNDUs, with ule.lua, which then tells the PID.

-- By channel and CID: the context behind the last packet.
local live = {}
-- By frame and number of the packet in it, then by channel and CID: the context before it.
local frames = {}

function proto.init()
    live, frames = {}, {}
end

-- Names of the channel of a packet and of the one the other way.
local function channels(pinfo)
    local source, destination = tostring(pinfo.dl_src), tostring(pinfo.dl_dst)
    local pid = pinfo.private.ule_pid
    if pid then
        source = source .. " PID " .. pid
    end
    return source .. ">" .. destination, destination .. ">" .. source
end

local function context_before(pinfo, key)
    local place = pinfo.number .. "/" .. (pinfo.private.rohc_coap or 0)
    local frame = frames[place]
    if not frame then
        frame = {}
        frames[place] = frame
    end
    if not pinfo.visited and frame[key] == nil then
        frame[key] = live[key] or false
    end
    return frame[key] or nil
end

-- Reads, and tells in the tree what ended it early. Returns whether nothing did.
local function guarded(c, read)
    local done, problem = pcall(read)
    if done then
        return true
    end
    if type(problem) ~= "table" then
        error(problem, 0)
    end
    local at = math.ceil(c.bit / 8)
    if c:offset(at) < #c.raw then
        c.root:add(F.undissected, c.tvb:range(c:offset(at)))
    end
    c.root:add_proto_expert_info(E[problem.kind], problem.why)
    return false
end

-- Feedback: RFC 5795, section 5.2.4. Element data of RFC 5225, section 6.9, for contexts of profile 0x0181, else of
-- RFC 3095, section 5.7.6.

-- The CID of element data, and where its feedback begins.
local function feedback_cid(data, large)
    local first = data:byte(1)
    if large then
        if first >= 0xC0 or first >= 0x80 and #data < 2 then
            stop("malformed", "a CID that is none")
        end
        return first < 0x80 and first or first % 64 * 256 + data:byte(2), first < 0x80 and 1 or 2
    elseif #data > 1 and first >= 0xC0 then
        if first < 0xE0 or first >= 0xF0 then
            stop("malformed", "a CID that is none")
        end
        return first % 16, 1
    end
    return 0, 0
end

local FEEDBACK_CRC = 1

-- Options up to `finish`. A CRC option covers the element data from `start` on, with every CRC option taken as zero.
local function read_feedback_options(c, start, finish)
    local covered, crc = c.raw:sub(start + 1, c:position()), nil
    while c:position() < finish do
        local at = c:position()
        local kind = c:num("feedback_option", 4)
        local len = c:take(4)
        if c:position() + len > finish then
            stop("malformed", "a feedback option longer than its element")
        end
        local value = c:bytes("feedback_value", len)
        if kind == FEEDBACK_CRC and len == 1 then
            crc, value = value:byte(), "\0"
        end
        covered = covered .. c.raw:sub(at + 1, at + 1) .. value
    end
    return crc == nil or crc8(covered) == crc, crc
end

local function read_feedback(tvb, pinfo, tree, at, len, large)
    local data = tvb:raw(at, len)
    local c = Cursor.new(tvb, at, at + 1, tree)
    c.root = tree
    guarded(c, function()
        local cid, before = feedback_cid(data, large)
        c:octets(before)
        tree:add(F.cid, tvb:range(at, math.max(before, 1)), cid)
        tree:append_text(", CID " .. cid)
        local size = len - before
        if size == 0 then
            stop("malformed", "an element without feedback")
        elseif size == 1 then
            generated(tree, "feedback_form", "FEEDBACK-1")
            c:num("acked", 8)
            return
        end
        local _, back = channels(pinfo)
        local context = context_before(pinfo, back .. "/" .. cid)
        local is_rfc5225 = context and OWN[context.profile % 256]
        -- The context is one of the other channel, which need not be in this capture. Then the CRC that only
        -- RFC 5225 has in this place tells.
        local has_crc = size >= 3 and crc8(data:sub(1, before + 2) .. "\0" .. data:sub(before + 4)) == data:byte(before + 3)
        if not context then
            is_rfc5225 = has_crc
        end
        generated(tree, "feedback_form", is_rfc5225 and "FEEDBACK-2, RFC 5225" or "FEEDBACK-2, RFC 3095")
        tree:append_text(", " .. ACKS[c:num("acktype", 2)])
        if is_rfc5225 then
            c:num("acked", 14)
            c:num("crc", 8)
        else
            c:num("mode", 2)
            c:num("acked", 12)
        end
        local is_right, crc = read_feedback_options(c, at, at + len)
        if is_rfc5225 then
            is_right, crc = has_crc, true
        end
        if crc then
            generated(tree, "crc_status", is_right and "right" or "wrong")
        end
        if not is_right then
            tree:add_proto_expert_info(E.crc, "CRC-8 over the element is wrong")
        end
    end)
end

-- A packet: RFC 5795, section 5.2.

local function is_feedback(octet)
    return octet and octet >= 0xF0 and octet < 0xF8
end

-- Padding and feedback; returns where the header begins.
local function read_front(tvb, pinfo, tree, raw, large)
    local at = 0
    while raw:byte(at + 1) == 0xE0 do
        at = at + 1
    end
    if at > 0 then
        tree:add(F.padding, tvb:range(0, at))
    end
    while is_feedback(raw:byte(at + 1)) do
        local size, head = raw:byte(at + 1) % 8, 1
        if size == 0 then
            size, head = raw:byte(at + 2) or 0, 2
        end
        if size == 0 or at + head + size > #raw then
            tree:add_proto_expert_info(E.malformed, "a feedback element longer than its packet")
            return #raw
        end
        local sub = tree:add(F.feedback, tvb:range(at, head + size))
        read_feedback(tvb, pinfo, sub, at + head, size, large)
        at = at + head + size
    end
    return at
end

-- CID of a header that begins at `at`, where its first octet is, and where it goes on; nil if there is none.
local function read_cid(tvb, tree, raw, at, large)
    local first = raw:byte(at + 1)
    local is_add_cid = first >= 0xE0 and first < 0xF0
    if not large then
        if not is_add_cid then
            generated(tree, "cid", 0)
            return 0, at, at + 1
        end
        -- Neither padding, Add-CID, feedback nor a segment may follow.
        local behind = raw:byte(at + 2)
        if first == 0xE0 or not behind or behind >= 0xE0 and behind < 0xF8 or behind >= 0xFE then
            return nil
        end
        tree:add(F.cid, tvb:range(at, 1), first % 16)
        return first % 16, at + 1, at + 2
    end
    local a, b = raw:byte(at + 2, at + 3)
    if is_add_cid or not a or a >= 0xC0 or a >= 0x80 and not b then
        return nil
    end
    local cid, len = a, 1
    if a >= 0x80 then
        cid, len = a % 64 * 256 + b, 2
    end
    tree:add(F.cid, tvb:range(at + 1, len), cid)
    return cid, at, at + 1 + len
end

local function summary(pinfo, out, cid)
    local parts = { out.format or "Unknown format" }
    local x, t = out.x, out.t
    if cid > 0 then
        parts[#parts + 1] = "CID " .. cid
    end
    if x and x.msn_bits then
        parts[#parts + 1] = string.format("MSN %d/%d", x.msn_bits, x.msn_width)
    end
    if x and x.template then
        parts[#parts + 1] = "template " .. x.template
    end
    if t and t.code then
        local code = CODES[t.code] or string.format("%d.%02d", math.floor(t.code / 32), t.code % 32)
        parts[#parts + 1] = TYPES[x.type or t.type] .. " " .. code
    end
    if x and x.message_id then
        parts[#parts + 1] = "MID " .. x.message_id
    end
    if x and x.token and #x.token > 0 then
        parts[#parts + 1] = "token " .. hex(x.token)
    end
    if out.payload and out.payload > 0 then
        parts[#parts + 1] = out.payload .. " octets of payload"
    end
    pinfo.cols.info = table.concat(parts, ", ")
end

local function dissect_header(tvb, pinfo, tree, at, large, root)
    local raw = tvb:raw()
    local cid, first_at, rest = read_cid(tvb, tree, raw, at, large)
    if not cid then
        tree:add_proto_expert_info(E.malformed, "no CID, or a reserved one")
        return
    end
    local first = raw:byte(first_at + 1)
    local key = channels(pinfo) .. "/" .. cid
    local context = context_before(pinfo, key)
    local names_profile = first >= 0xFC and first < 0xFE or first == 0xF8
    local profile = context and context.profile
    if names_profile then
        profile = raw:byte(rest + 1)
        if not profile then
            tree:add_proto_expert_info(E.malformed, "the packet ends within its header")
            return
        end
        profile = OWN[profile] or profile
    end
    local c = Cursor.new(tvb, first_at, rest, tree)
    c.root = tree
    local out = { format = names_profile and (first == 0xF8 and "IR-DYN" or "IR") or nil }
    if not profile then
        pinfo.cols.info = "No context"
        tree:add(F.undissected, tvb:range(at))
        local why = "no IR packet of CID " .. cid .. " was seen"
        tree:add_proto_expert_info(E.missing, why)
        return
    end
    if not names_profile then
        generated(tree, "profile", profile)
    elseif not OWN[profile % 256] then
        tree:add(F.profile, tvb:range(rest, 1), profile)
    end
    if not OWN[profile % 256] then
        if not pinfo.visited and first ~= 0xF8 then
            live[key] = { profile = profile }
        end
        local theirs = proto.prefs.others and not large and Dissector.get("rohc")
        tree:append_text(", profile " .. (PROFILES[profile] or string.format("0x%02x", profile)))
        if theirs then
            pinfo.cols.protocol = ""
            -- What it takes for malformed it says itself, and then throws.
            pcall(theirs.call, theirs, tvb:range(at):tvb(), pinfo, root)
        else
            pinfo.cols.info = "ROHC, profile " .. (PROFILES[profile] or string.format("0x%02x", profile))
            tree:add(F.undissected, tvb:range(at))
        end
        return
    end
    pinfo.cols.protocol = profile == DTLS and "ROHC/DTLS" or "ROHC/CoAP"
    local known = context and context.profile == profile and context or { profile = profile, templates = {} }
    local done = guarded(c, function()
        if first == 0xFC then
            out.format = "IR-CR"
        elseif first == 0xF8 then
            stop("malformed", "the profile has no IR-DYN")
        end
        if profile == DTLS then
            return read_dtls(c, known, out, at)
        end
        if out.format then
            generated(tree, "format", out.format)
        end
        if first == 0xFD then
            read_ir(c, known, out, at)
        elseif first == 0xFC then
            read_ir_cr(c, out)
        else
            read_compressed(c, known, out)
        end
    end)
    if done and c:left() > 0 then
        out.payload = c:left()
        tree:add(F.payload, tvb:range(c:position()))
    end
    if out.after and not pinfo.visited then
        live[key] = out.after
    end
    tree:append_text(", " .. PROFILES[profile] .. (out.format and ", " .. out.format or ""))
    summary(pinfo, out, cid)
end

function proto.dissector(tvb, pinfo, root)
    local large = proto.prefs.large_cids
    pinfo.private.rohc_coap = tostring((pinfo.private.rohc_coap or 0) + 1)
    pinfo.cols.protocol = "ROHC"
    local tree = root:add(proto, tvb())
    local raw = tvb:raw()
    local at = read_front(tvb, pinfo, tree, raw, large)
    local first = raw:byte(at + 1)
    pinfo.cols.info = ""
    if not first then
        pinfo.cols.info = "Feedback"
        if raw:find("^\224*$") then
            tree:add_proto_expert_info(E.malformed, "nothing but padding")
        end
    elseif first >= 0xFE then
        pinfo.cols.info = first == 0xFF and "Last segment" or "Segment"
        tree:add(F.segment, tvb:range(at))
        tree:add_proto_expert_info(E.missing, "segments are not put together")
    else
        dissect_header(tvb, pinfo, tree, at, large, root)
    end
    return tvb:len()
end

-- Where thinair puts ROHC packets: link type USER0 (147), and Ethernet frames of type 0x22F1.
DissectorTable.get("wtap_encap"):add((wtap_encaps or wtap).USER0, proto)
DissectorTable.get("ethertype"):add(0x22F1, proto)
