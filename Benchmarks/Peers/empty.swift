// Does nothing: what a Swift program takes before and after what it does.
