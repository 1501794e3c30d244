"""ALFWorld for vlgym: household tasks in 120 real room layouts, seen as a plan and played in words."""
