"""The minimiser with a proof of how close it is: sums in more than double precision, and a bound."""
