"""What the documentation site is made of beside its pages: reference pages from the code, and checks of the result."""
