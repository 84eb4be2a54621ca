"""Pack for PaddlePaddle's operator YAML."""
