"""This machine's own vitals, read from what Linux shows of them."""

from htfi.adapters.device.metrics import DeviceMetrics, DeviceMonitor

__all__ = ["DeviceMetrics", "DeviceMonitor"]
