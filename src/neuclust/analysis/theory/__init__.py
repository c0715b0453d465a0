"""The paper's analysis for one problem or one run: what `neuclust.theory` computes, put together and said in words."""
