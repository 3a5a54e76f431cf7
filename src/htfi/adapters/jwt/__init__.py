"""Signed tokens (JWT, RFC 7519), over PyJWT."""
