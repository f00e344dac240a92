"""What crosses an exchange: frames, partitioners and the watermark valve."""
