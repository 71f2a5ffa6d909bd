// Does nothing: measures the time that a Swift program takes to start and to end.
