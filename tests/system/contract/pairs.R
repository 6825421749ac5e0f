# The table of pairs.py as R's users have it: put into groups, or observed by them; KL of each column as JSON.
# usage: Rscript pairs.R URL TABLE put|observe GROUP...
library(kldiv)

arguments <- commandArgs(trailingOnly = TRUE)
client <- kl_client(arguments[1])
columns <- jsonlite::fromJSON(arguments[2])$columns
table <- data.frame(columns, check.names = FALSE, stringsAsFactors = FALSE)
table$factor <- factor(table$factor)
table$time <- as.POSIXct(table$time, origin = "1970-01-01", tz = "America/New_York")
table$midnight <- as.Date(table$midnight / 86400, origin = "1970-01-01")
# bit64's integers: 2^53 and a few more, the lowest byte first
rest <- as.integer(substr(table$id, 13, 16)) - 992L
bytes <- rbind(rest, 0, 0, 0, 0, 0, 0x20, 0)
table$id <- structure(readBin(as.raw(bytes), "double", length(rest), 8, endian = "little"), class = "integer64")
table$holes[which(is.na(table$holes))[c(TRUE, FALSE)]] <- NaN
said <- list()
for (group in arguments[-(1:3)]) {
  if (arguments[3] == "put") kl_reference(table, group, include = names(table), client = client)
  else {
    results <- kl_observe(table, group, client = client)
    said[[group]] <- setNames(as.list(results$kl), results$name)
  }
}
cat(jsonlite::toJSON(said, auto_unbox = TRUE, digits = NA))
