# Numbers as text and as bytes.

# The decimals that read back to the same numbers.
numbers_text <- function(x) {
  x <- as.double(x)
  text <- sprintf("%.15g", x)
  longer <- which(is.finite(x) & suppressWarnings(as.double(text)) != x)
  text[longer] <- sprintf("%.17g", x[longer])
  text[is.infinite(x)] <- ifelse(x[is.infinite(x)] > 0, "Infinity", "-Infinity")
  text
}

# The halves of whole numbers of 64 bits (bit64's integer64): a matrix of 32 unsigned bits each, the lower first.
halves <- function(x) {
  words <- readBin(writeBin(as.vector(unclass(x)), raw(), endian = "little"), "integer", 2 * length(x), 4, endian = "little")
  matrix(unsigned(words), nrow = 2)
}

# readBin has no unsigned whole numbers of 32 bits, and takes the lowest signed one for NA.
unsigned <- function(words) {
  words <- as.double(words)
  words[is.na(words)] <- 2^31
  ifelse(words < 0, words + 2^32, words)
}

is_integer64 <- function(x) inherits(x, "integer64")

integer64_is_na <- function(x) {
  parts <- halves(x)
  parts[2, ] == 2^31 & parts[1, ] == 0
}

integer64_double <- function(x) {
  parts <- halves(x)
  value <- ifelse(parts[2, ] >= 2^31, (parts[2, ] - 2^32) * 2^32 + parts[1, ], parts[2, ] * 2^32 + parts[1, ])
  value[integer64_is_na(x)] <- NA
  value
}

# All digits: division by a million of four parts of 16 bits, each step of which float64 holds.
integer64_text <- function(x) {
  parts <- halves(x)
  negative <- parts[2, ] >= 2^31
  low <- ifelse(negative, (2^32 - parts[1, ]) %% 2^32, parts[1, ])
  high <- ifelse(negative, 2^32 - parts[2, ] - (low > 0), parts[2, ])
  limbs <- rbind(high %/% 65536, high %% 65536, low %/% 65536, low %% 65536)
  text <- rep("", length(low))
  for (step in 1:4) {
    rest <- numeric(length(low))
    for (i in 1:4) {
      value <- rest * 65536 + limbs[i, ]
      limbs[i, ] <- value %/% 1e6
      rest <- value %% 1e6
    }
    text <- paste0(sprintf("%06.0f", rest), text)
  }
  text <- sub("^0+(.)", "\\1", text)
  text <- ifelse(negative, paste0("-", text), text)
  text[integer64_is_na(x)] <- NA
  text
}
