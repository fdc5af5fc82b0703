"""Compresses and decompresses a packet with libthinair-rohc, by ctypes. Usage: rohc.py [LIBRARY]"""
import ctypes as c, sys

rohc = c.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libthinair-rohc.so.0")
config, handle, n = c.create_string_buffer(256), c.c_void_p(), c.c_size_t()
assert rohc.thinair_rohc_config_init(config) == 0 and rohc.thinair_rohc_create(config, None, c.c_size_t(0), c.byref(handle)) == 0
packet = bytes.fromhex("6000000000111140fd000ec0000000000000000000000001fd000ec0000000000000000000000002e00116330011123440011234b474696d65")
out, back = c.create_string_buffer(2000), c.create_string_buffer(2000)
for i in range(6):
    assert rohc.thinair_rohc_compress(handle, c.c_uint64(i * 10**7), packet, c.c_size_t(len(packet)), out, c.c_size_t(2000), c.byref(n)) == 0
    print(len(packet), "->", n.value)
    assert rohc.thinair_rohc_decompress(handle, c.c_uint64(i * 10**7), c.c_uint32(0), out, n, back, c.c_size_t(2000), c.byref(n)) == 0
    assert back.raw[: n.value] == packet
