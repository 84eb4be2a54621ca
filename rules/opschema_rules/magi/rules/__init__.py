"""The rules of this pack, by the code's hundred."""
