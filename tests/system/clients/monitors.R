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

# jsonlite writes each scalar as an array of one, and infinities as texts; the server reads both.
ask <- function(verb, path, ...) {
  answer <- verb(paste0(group, path), body = toJSON(list(...), digits = NA, na = "string"),
                 content_type_json())
  json <- fromJSON(content(answer, "text", encoding = "UTF-8"))
  if (http_error(answer)) stop(json$detail)
  json
}
doors <- ask(PUT, "/doors", bins = list(labels = c(2, 4)), reference = list(counts = c(60, 40)),
             window = list(count = 100), thresholds = list(warning = 0.05, critical = 0.2),
             fire_after = 2, retention_days = 30)
stopifnot(doors$fire_after == 2, identical(doors$bins$labels, c("2", "4")))
trip <- ask(PUT, "/trip", reference = list(values = c(1.5, 2.5, Inf, NA)),
            binning = list(method = "width", bins = 2))
stopifnot(trip$reference$overflow == 1, trip$reference$missing == 1)
stopifnot(ask(POST, "/trip/observations", values = c(1.5, -Inf), timestamp = 1e9)$n == 2)
