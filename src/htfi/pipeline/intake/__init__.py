"""Intake: untrusted rows become events in order of time, or rejections with a reason. Feeds use it."""
