bits <- function(...) as.raw(c(...))
file_of <- function(dtype, shape, bytes) {
  header <- charToRaw(sprintf("{\"x\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[0,%d]}}", dtype, shape, length(bytes)))
  c(writeBin(c(length(header), 0L), raw(), 4, "little"), header, bytes)
}

test_that("whole numbers are written as the float64 that the header names", {
  for (values in list(1:6, c(1, 2, 3, 4, 5, 6), c(TRUE, FALSE, TRUE)))
    expect_equal(as.double(read_safetensors(write_safetensors(list(x = values)))$x), as.double(values))
  matrix <- matrix(1:6, 2)
  expect_equal(read_safetensors(write_safetensors(list(x = matrix)))$x, matrix)
  array <- array(1:24, 2:4)
  expect_equal(read_safetensors(write_safetensors(list(x = array)))$x, array)
  expect_equal(read_safetensors(write_safetensors(list(x = c(1L, NA))))$x, c(1, NA))
})

test_that("the bytes are those of a row-major array", {
  file <- write_safetensors(list(x = matrix(1:4, 2)))
  size <- readBin(file, "integer", 1, 4, endian = "little")
  expect_equal(readBin(file[-seq_len(8 + size)], "double", 4, 8, endian = "little"), c(1, 3, 2, 4))
})

test_that("each dtype is read as what it is, or refused", {
  expect_equal(read_safetensors(file_of("F16", 4, bits(0, 0x3c, 0, 0xc0, 0, 0x7c, 1, 0)))$x, c(1, -2, Inf, 2^-24))
  expect_true(is.nan(read_safetensors(file_of("F16", 1, bits(1, 0x7c)))$x))
  expect_equal(read_safetensors(file_of("BF16", 3, bits(0x80, 0x3f, 0x80, 0xbf, 0x80, 0x7f)))$x, c(1, -1, Inf))
  expect_equal(read_safetensors(file_of("F32", 2, bits(0, 0, 0x80, 0x3f, 0, 0, 0, 0xbf)))$x, c(1, -0.5))
  expect_equal(read_safetensors(file_of("I64", 2, bits(rep(0xff, 8), 5, rep(0, 7))))$x, c(-1, 5))
  expect_equal(read_safetensors(file_of("I32", 2, bits(0, 0, 0, 0x80, 1, 0, 0, 0)))$x, c(-2^31, 1))
  expect_equal(read_safetensors(file_of("U32", 2, bits(0, 0, 0, 0x80, 255, 255, 255, 255)))$x, c(2^31, 2^32 - 1))
  expect_equal(read_safetensors(file_of("I16", 1, bits(0xfe, 0xff)))$x, -2)
  expect_equal(read_safetensors(file_of("U8", 2, bits(255, 0)))$x, c(255, 0))
  expect_identical(read_safetensors(file_of("BOOL", 2, bits(1, 0)))$x, c(TRUE, FALSE))
  expect_error(read_safetensors(file_of("F8_E4M3", 1, bits(1))), "F8_E4M3")
  expect_error(read_safetensors(charToRaw("<html>")), "no safetensors")
})

test_that("numbers are written so that they read back", {
  set.seed(1)
  values <- c(0.1, 1/3, 1e22, 2^53 + 2, -0.1 - 0.2, 5e-324, 1.7976931348623157e308, rnorm(1000), 10^runif(1000, -300, 300))
  expect_identical(as.double(numbers_text(values)), values)
  expect_identical(numbers_text(c(0.1, 3, 1e5, 100000000, -Inf)), c("0.1", "3", "100000", "100000000", "-Infinity"))
})

test_that("whole numbers of 64 bits have all their digits", {
  some <- integer64(1, 0, 0, 0, 0, 0, 0x20, 0, rep(0xff, 8), rep(0, 8), rep(0xff, 7), 0x7f, rep(0, 7), 0x80, 0x15, rep(0, 7))
  expect_identical(integer64_text(some), c("9007199254740993", "-1", "0", "9223372036854775807", NA, "21"))
  expect_identical(integer64_double(some), c(2^53, -1, 0, 2^63, NA, 21))
  expect_equal(as.double(read_safetensors(write_safetensors(list(x = some)))$x)[c(2, 6)], c(-1, 21))
})
