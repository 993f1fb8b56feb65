"""No input gives anything but a value or a declared refusal: hypothesis over the decoder, the ladder and the edge."""
