# R with httr: monitors of all columns of a data frame, as CSV; the verdict on each.
library(httr)
library(jsonlite)
group <- paste0(commandArgs(trailingOnly = TRUE)[1], "/cars") # the argument is http://HOST/monitors

send <- function(verb, url, table, ...) {
  text <- paste(capture.output(write.csv(table, row.names = FALSE)), collapse = "\n")
  answer <- verb(url, query = list(...), body = text, content_type("text/csv"))
  json <- fromJSON(content(answer, "text", encoding = "UTF-8"))
  if (http_error(answer)) stop(json$detail)
  json
}

# NA is a missing value, a factor or a text has labels for bins.
reference <- data.frame(speed = rep(1:50, 20), kind = rep(c("a", "b"), 500))
current <- data.frame(speed = rep(21:60, 5), kind = rep(c("b", NA, "a", "b"), 50))
invisible(send(PUT, group, reference, method = "quantile"))
results <- send(POST, paste0(group, "/observations"), current)$monitors
print(results[, c("name", "verdict", "kl")])
stopifnot(identical(results$verdict, c("critical", "critical")))
