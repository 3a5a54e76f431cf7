"""HTFI: real-time probabilistic forecasts of prices and news, each recorded before it is released.

Importing it turns off the telemetry of the libraries that it uses, in this process and in those that it starts.
"""

import os
import sys
import warnings

__version__ = "0.1.0"

_TELEMETRY = "ORT_DISABLE_TELEMETRY"

if "onnxruntime" in sys.modules and os.environ.get(_TELEMETRY) != "1":
    warnings.warn(
        "onnxruntime was imported before htfi: its telemetry, which is on by default, can no longer be turned off in "
        f"this process. Import htfi first, or set {_TELEMETRY}=1.",
        RuntimeWarning,
        stacklevel=2,
    )
# Libraries read these when they are imported, which a module of this package can do only after this line.
os.environ |= {_TELEMETRY: "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
