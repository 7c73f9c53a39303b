"""Records on their way in: what is declared about them, where they lie, and how they become rows."""
