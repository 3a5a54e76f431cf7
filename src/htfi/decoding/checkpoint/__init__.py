"""Models on disk: Hugging Face folders of config.json, safetensors and tokenizer.json, read with numpy alone."""
