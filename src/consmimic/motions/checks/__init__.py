"""The single checks of a clip: one function each, from a case to a finding."""
