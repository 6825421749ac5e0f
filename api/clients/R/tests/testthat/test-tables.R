json_of_table <- function(df) {
  body <- table_body(df)
  expect_equal(body$type, "application/json")
  jsonlite::fromJSON(utf8(rawToChar(body$body)), simplifyVector = FALSE)$columns
}

test_that("what a column means travels with it", {
  columns <- json_of_table(data.frame(
    code = c("00501", NA, ""), factor = factor(c("2", "10", NA)), flag = c(TRUE, NA, FALSE), number = c(0.1, NA, Inf), whole = c(1L, NA, 3L),
    day = as.Date(c("1970-01-02", NA, "2026-01-01")), time = as.POSIXct(c("1970-01-01 01:00:00", NA, "1970-01-01 02:00:00"), tz = "Europe/Berlin"),
    span = as.difftime(c(1, NA, 2), units = "mins")))
  expect_equal(columns, list(
    code = list("00501", NULL, ""), factor = list("2", "10", NULL), flag = list(TRUE, NULL, FALSE), number = list(0.1, NULL, "Infinity"),
    whole = list(1L, NULL, 3L), day = list(86400L, NULL, 1767225600L), time = list(0L, NULL, 3600L), span = list(60L, NULL, 120L)))
  lt <- data.frame(a = "x")
  lt$time <- as.POSIXlt("1970-01-01 00:00:05", tz = "UTC")
  expect_equal(json_of_table(lt)$time, list(5L))
})

test_that("texts are UTF-8, whatever they are marked with", {
  latin1 <- "M\xfcller"
  Encoding(latin1) <- "latin1"
  unmarked <- "M\xc3\xbcller"
  for (text in c(latin1, unmarked, "M\u00fcller"))
    expect_identical(quoted(text), "\"M\u00fcller\"")
  expect_identical(quoted("a\"b\\c\n\t\x01"), "\"a\\\"b\\\\c\\u000a\\u0009\\u0001\"")
  expect_identical(names(json_of_table(setNames(data.frame("x"), latin1))), "M\u00fcller")
})

test_that("texts are the same in the C locale", {
  script <- tempfile(fileext = ".R")
  on.exit(unlink(script))
  writeLines(c("x <- 'M\\xfcller'; Encoding(x) <- 'latin1'; y <- 'M\\xc3\\xbcller'",
               "body <- kldiv:::table_body(data.frame(a = c(x, y, 'M\\u00fcller'), b = factor(c(x, x, 'z'))))$body",
               "cat(paste(as.character(body), collapse = ''), kldiv:::segment(x), kldiv:::segment(y))"), script)
  said <- system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", script), stdout = TRUE, env = "LC_ALL=C")
  word <- paste(as.character(charToRaw("M\u00fcller")), collapse = "")
  expect_length(gregexpr(word, said)[[1]], 5)
  expect_match(said, " M%C3%BCller M%C3%BCller$")
})

test_that("columns of numbers alone travel as bytes", {
  body <- table_body(data.frame(x = c(0.1, NA), n = c(1L, NA), flag = c(TRUE, FALSE)))
  expect_equal(body$type, "application/vnd.safetensors")
  read <- read_safetensors(body$body)
  expect_equal(read$x, c(0.1, NA))
  expect_equal(read$n, c(1, NA))
  expect_identical(read$flag, c(TRUE, FALSE))
})

test_that("what no column can be is left out, and named", {
  df <- data.frame(x = 1:2)
  df$nested <- list(1, 2)
  df$matrix <- matrix(1:4, 2)
  df$wave <- c(1i, 2i)
  expect_warning(body <- table_body(df), "nested, matrix, wave")
  expect_named(read_safetensors(body$body), "x")
  expect_error(table_body(list(x = 1)), "data frame")
  expect_error(table_body(setNames(data.frame(1, 2), c("x", "x"))), "twice")
})

test_that("tables without rows, columns or names travel as they are", {
  expect_equal(rawToChar(table_body(data.frame())$body), "{\"columns\":{}}")
  expect_equal(json_of_table(data.frame(x = character(0), y = logical(0))), list(x = list(), y = list()))
  expect_equal(json_of_table(setNames(data.frame("a", "b"), c("", "x"))), list(list("a"), list("b")), ignore_attr = TRUE)
  expect_equal(json_of_table(data.frame(f = addNA(factor(c("a", NA))))), list(f = list("a", NULL)))
  tibble <- structure(list(x = c("a", "b")), class = c("tbl_df", "tbl", "data.frame"), row.names = 1:2)
  expect_equal(json_of_table(tibble), list(x = list("a", "b")))
})

test_that("names in paths are escaped", {
  expect_equal(vapply(c("team/fraud", "%2F", "a b", "?", "#", "..x", "a+b", "\u00fc", "~._-"), segment, ""),
               c("team%2Ffraud", "%252F", "a%20b", "%3F", "%23", "..x", "a%2Bb", "%C3%BC", "~._-"), ignore_attr = TRUE)
  for (name in list("", ".", "..", NA, c("a", "b")))
    expect_error(segment(name), "no name")
})

test_that("times of requests are UTC", {
  expect_equal(time_text(as.POSIXct("2026-01-01 01:00:00.25", tz = "Europe/Berlin")), "2026-01-01T00:00:00.250000Z")
  expect_equal(time_text(as.POSIXct(0.1, origin = "1970-01-01", tz = "UTC")), "1970-01-01T00:00:00.100000Z")
  expect_equal(query_of(list(a = as.Date("2026-01-01"), b = NULL, c = TRUE, d = c("x", "y"), e = 1e6, f = 0.1)),
               list(a = "2026-01-01", c = "true", d = "x,y", e = "1000000", f = "0.1"))
})
