"""Intake: untrusted rows become events in order of time, or rejections with a reason. Feeds adapters use it."""
