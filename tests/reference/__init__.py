"""The reference that tests hold Heddle against: random graphs, placements, float64 values with error bounds.
Nothing here shares code with the C sources; formats are read and written from their descriptions alone."""
