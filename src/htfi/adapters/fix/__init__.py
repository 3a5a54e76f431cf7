"""FIX over TCP and TLS: sockets, timers and the journal around the session of `execution/fix`."""
