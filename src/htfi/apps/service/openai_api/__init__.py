"""Endpoints of OpenAI's form over the models of this installation."""
