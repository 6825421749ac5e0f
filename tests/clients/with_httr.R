# R with httr: JSON, and safetensors.
library(httr)
url <- paste0(commandArgs(trailingOnly = TRUE)[1], "?reduction=batchmean")

loss <- function(body, type) {
  answer <- POST(url, body = body, content_type(type))
  stop_for_status(answer)
  content(answer)$loss
}

# Tensors are row-major, R's matrices column-major: hence t().
json <- '{"input": [[-1, -0.5], [-2, -0.25]], "target": [[0.25, 0.75], [0.5, 0.5]]}'
cat(loss(json, "application/json"), "\n")

input <- rbind(c(-1, -0.5), c(-2, -0.25))
target <- rbind(c(0.25, 0.75), c(0.5, 0.5))
header <- charToRaw(paste0(
  '{"input":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},',
  '"target":{"dtype":"F32","shape":[2,2],"data_offsets":[16,32]}}'))
float32 <- function(m) writeBin(as.vector(t(m)), raw(), size = 4, endian = "little")
file <- c(writeBin(c(length(header), 0L), raw(), size = 4, endian = "little"),
          header, float32(input), float32(target))
cat(loss(file, "application/vnd.safetensors"), "\n")
