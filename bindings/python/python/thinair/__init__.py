"""Header compression of IP packets: what it saves on captures, and ROHC on octets.

>>> import thinair
>>> flows = thinair.analyze("captures/coap_udp6_get_con.pcap", schemes=["coap/o", "schc"])
>>> {scheme["scheme"]: round(scheme["saved_ratio"], 2) for scheme in flows.totals["schemes"]}
{'coap': 0.91, 'schc': 0.85}

`analyze` sends each packet of a capture through every scheme, restores it, and compares both. `Flows` hands the results to
pandas, polars, pyarrow and DuckDB. `Compressor`, `Decompressor` and `Endpoint` are the engines themselves.
"""

from thinair._analyze import Survey, analyze, merge, survey
from thinair._flows import Flows
from thinair._frame import Frame
from thinair._native import Compressor, DecompressError, Decompressor, Endpoint

__all__ = ["Compressor", "DecompressError", "Decompressor", "Endpoint", "Flows", "Frame", "Survey", "analyze", "merge", "survey"]
