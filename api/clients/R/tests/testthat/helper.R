# A running service, and a server that answers errors (tests/system/clients/answers.py), which `make clients` starts.
service <- function(...) {
  url <- Sys.getenv("KLDIV_URL")
  testthat::skip_if(!nzchar(url), "KLDIV_URL names no service")
  kl_client(url, token = "", ...)
}

answers <- function(case, ...) {
  url <- Sys.getenv("KLDIV_ANSWERS_URL")
  testthat::skip_if(!nzchar(url), "KLDIV_ANSWERS_URL names no server of errors")
  kl_client(paste0(url, "/", case), token = "", ...)
}

# The labels of a monitor.
labels_of <- function(made, name) {
  monitors <- attr(made, "json")$monitors
  unlist(monitors[[match(name, made$name)]]$bins$labels)
}

# What is written of a double of these bytes, the lowest first.
integer64 <- function(...) structure(readBin(as.raw(c(...)), "double", length(c(...)) / 8, 8, endian = "little"), class = "integer64")
