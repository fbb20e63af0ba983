"""What the engine costs, measured beside something else in the same minute."""
