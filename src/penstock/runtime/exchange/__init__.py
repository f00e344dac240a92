"""The parts of an exchange: frames, partitioners and the watermark valve."""
