"""What of a draft stands: by the shared noise, the default, or by rejection. The author settles rounds by one."""
