# R with httr: JSON, -Inf, gradients, and safetensors; errors that tell what is wrong.
library(httr)
library(jsonlite)
url <- commandArgs(trailingOnly = TRUE)[1]

# httr parses application/json by itself, application/problem+json not: that is read as text.
kl_div <- function(body, type = "application/json", ...) {
  answer <- POST(url, query = list(...), body = body, content_type(type))
  text <- content(answer, "text", encoding = "UTF-8")
  if (http_error(answer)) stop(fromJSON(text)$detail)
  fromJSON(text)
}

# With digits = NA toJSON writes 15 digits (else 4 decimals); bytes, as below, lose nothing. A matrix
# goes row by row, infinities as the strings "Inf" and "-Inf", which the server reads.
as_json <- function(...) toJSON(list(...), digits = NA, na = "string")

input <- rbind(c(-1, -0.5), c(-2, -0.25))
target <- rbind(c(0.25, 0.75), c(0.5, 0.5))
cat(kl_div(as_json(input = input, target = target), reduction = "batchmean")$loss, "\n")

# Infinite losses come back as strings, and fromJSON then makes strings of all: hence as.numeric().
rows <- kl_div(as_json(input = rbind(c(-Inf, 0), c(-1, -0.5)), target = target),
               reduction = "none", dim = -1, gradient = "input")
stopifnot(identical(as.numeric(rows$loss)[1], Inf), is.matrix(rows$gradient$input))

failure <- tryCatch(kl_div(as_json(input = input, target = 1)), error = conditionMessage)
stopifnot(grepl("shape", failure))

# Tensors are row-major, R's matrices column-major: hence t().
header <- charToRaw(paste0(
  '{"input":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},',
  '"target":{"dtype":"F32","shape":[2,2],"data_offsets":[16,32]}}'))
float32 <- function(m) writeBin(as.vector(t(m)), raw(), size = 4, endian = "little")
file <- c(writeBin(c(length(header), 0L), raw(), size = 4, endian = "little"),
          header, float32(input), float32(target))
cat(kl_div(file, "application/vnd.safetensors", reduction = "batchmean")$loss, "\n")
