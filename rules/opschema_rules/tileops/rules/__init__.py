"""The rules of the TileOPs pack, one module for each rule or handful that share one idea."""
