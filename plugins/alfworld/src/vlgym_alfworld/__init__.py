"""ALFWorld for vlgym: household tasks in 120 real room layouts, seen as a drawn plan and played in words."""
