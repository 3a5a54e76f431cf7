"""This machine's own vitals, read from what Linux shows of them."""

from htfi.adapters.device.vitals import Device, DeviceVitals

__all__ = ["Device", "DeviceVitals"]
