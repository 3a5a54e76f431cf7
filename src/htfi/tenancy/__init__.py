"""Tenants of a service: their keys, what they may use, what they have used. Pure; who stores it comes in by a port."""
