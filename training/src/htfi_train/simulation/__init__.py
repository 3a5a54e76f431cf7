"""Simulated markets, companies, news and attacks: what models and heads learn from and are judged on."""
