library(testthat)
library(kldiv)

test_check("kldiv")
