"""How item and user columns meet in the features that models read."""
