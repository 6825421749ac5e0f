# Monitors of a data frame's columns.

#' Monitors of a data frame
#'
#' `kl_reference` creates or replaces a monitor for each column of a data frame. `kl_observe` adds a data frame to the
#' monitors of its columns, and `kl_evaluate` scores one and stores nothing.
#'
#' Factors and texts are labels, whatever they look like; logical columns are booleans; `POSIXct`, `POSIXlt` and `Date` are
#' seconds since 1970 in UTC, as from other clients, and get a monitor if `include` names them; whole numbers of `integer64`
#' above 2^53 are labels with all their digits. `NA` is a missing value. List columns are left out with a warning. What the
#' service says of a table is a warning of class `kldiv_warning`, and of `kldiv_CODE`.
#' @param df A data frame.
#' @param group The group's name.
#' @param ... Settings of the monitors by their names, as `api/monitors/README.md` has them, such as `window = "86400s"`,
#'   `include = c("price", "country")`, `critical = 0.2`.
#' @param client Where the service is.
#' @return A data frame with a row for each monitor: of a reference `name`, `state`, `kind`, `bins` and `revision`; else
#'   `name`, `verdict`, `state`, `kl`, `n`, `n_reference`, `p_value`, `missing_ratio`, `unseen_ratio`, `window` and
#'   `sentence`. The attribute `json` has all that the service said.
#' @export
#' @examples
#' \dontrun{
#' kl_reference(iris, "plants", window = "86400s")
#' kl_observe(iris[101:150, ], "plants", timestamp = as.POSIXct("2026-01-01", tz = "UTC"))
#' plot(kl_windows("plants", "Sepal.Length"))
#' }
kl_reference <- function(df, group, ..., client = kl_client()) {
  table <- table_body(df)
  json <- json_of(perform(client, "PUT", c("monitors", group), list(...), table$body, table$type), "monitors")
  tell(json)
  bins <- lapply(json$monitors, function(monitor) monitor$bins)
  is_labels <- vapply(bins, function(bins) !is.null(bins$labels), NA)
  is_presence <- vapply(bins, function(bins) !is.null(bins$presence), NA)
  n_bins <- ifelse(is_presence, 1L, vapply(bins, function(bins) length(c(bins$labels, bins$edges)), 0L) - !is_labels)
  frame <- data.frame(name = texts_at(json$monitors, "name"), state = texts_at(json$monitors, "state"),
                      kind = ifelse(is_presence, "presence", ifelse(is_labels, "labels", "numbers")), bins = n_bins,
                      revision = numbers_at(json$monitors, "revision"))
  structure(frame, json = json)
}

#' @rdname kl_reference
#' @param timestamp When it was: a `POSIXct`, a `Date`, a text of RFC 3339; now, if it is NULL.
#' @param key A text under which the same rows count once in 24 hours; without it a key of this call, for repeats after
#'   errors.
#' @export
kl_observe <- function(df, group, timestamp = NULL, key = NULL, client = kl_client()) {
  table <- table_body(df)
  if (is.null(key)) key <- own_key()
  json <- json_of(perform(client, "POST", c("monitors", group, "observations"), list(timestamp = timestamp), table$body,
                          table$type, key = utf8(key)), "monitors")
  tell(json)
  results_frame(json)
}

#' @rdname kl_reference
#' @export
kl_evaluate <- function(df, group, client = kl_client()) {
  table <- table_body(df)
  json <- json_of(perform(client, "POST", c("monitors", group, "evaluate"), list(), table$body, table$type), "monitors")
  tell(json)
  results_frame(json)
}

calls <- new.env()
calls$n <- 0

# A key that no other call has, without the generator of random numbers.
own_key <- function() {
  calls$n <- calls$n + 1
  sprintf("R-%s-%d-%.6f-%d", Sys.info()[["nodename"]], Sys.getpid(), as.double(Sys.time()), calls$n)
}

results_frame <- function(json) {
  entries <- json$monitors
  frame <- data.frame(
    name = texts_at(entries, "name"), verdict = texts_at(entries, "verdict"), state = texts_at(entries, "state"),
    kl = numbers_at(entries, "kl"), n = numbers_at(entries, "n"), n_reference = numbers_at(entries, "n_reference"),
    p_value = numbers_at(entries, "g_test", "p_value"), missing_ratio = numbers_at(entries, "missing_ratio"),
    unseen_ratio = numbers_at(entries, "unseen_ratio"), window = numbers_at(entries, "window", "id"),
    sentence = texts_at(entries, "sentence"))
  structure(frame, json = json)
}

#' The windows of a monitor
#'
#' @param group,name The monitor.
#' @param ... `from`, `to` (times), `limit` (windows of a page) and other parameters, as `api/monitors/paths.md` has them.
#' @param client Where the service is.
#' @return A data frame of class `kl_windows`, oldest window first: `start`, `end`, `n`, `kl`, `p_value`, `verdict`, `mean`,
#'   `sd`, `closed`. Its attribute `thresholds` has those of the monitor. `plot()` draws it.
#' @export
kl_windows <- function(group, name, ..., client = kl_client()) {
  entries <- rev(all_pages(client, c("monitors", group, name, "windows"), "windows", list(...)))
  config <- json_of(perform(client, "GET", c("monitors", group, name)), "thresholds")
  frame <- data.frame(
    id = numbers_at(entries, "window", "id"),
    start = times_at(entries, "window", "start"), end = times_at(entries, "window", "end"),
    n = numbers_at(entries, "n"), kl = numbers_at(entries, "kl"), p_value = numbers_at(entries, "g_test", "p_value"),
    verdict = texts_at(entries, "verdict"), mean = numbers_at(entries, "mean"), sd = numbers_at(entries, "sd"),
    closed = texts_at(entries, "window", "closed") == "TRUE")
  structure(frame, class = c("kl_windows", "data.frame"), name = paste(group, name, sep = " / "),
            thresholds = unlist(config$thresholds[c("warning", "critical")]))
}

#' Draws the windows of a monitor
#'
#' @param x What [kl_windows()] returns.
#' @param ... Parameters of [graphics::plot()].
#' @return `x`, invisibly.
#' @export
plot.kl_windows <- function(x, ...) {
  colours <- c(ok = "darkgreen", warning = "orange", critical = "red", insufficient_data = "grey")
  thresholds <- attr(x, "thresholds")
  shown <- pmin(x$kl, max(c(x$kl[is.finite(x$kl)], thresholds)) * 1.1)
  arguments <- list(x = x$start, y = shown, type = "h", lwd = 6, col = colours[x$verdict],
                    ylim = c(0, max(shown, thresholds, na.rm = TRUE)), xlab = "", ylab = "KL, nats", main = attr(x, "name"))
  do.call(graphics::plot, utils::modifyList(arguments, list(...)))
  graphics::abline(h = thresholds, lty = 2, col = colours[names(thresholds)])
  invisible(x)
}

#' Changes of states
#'
#' @param group The group's name; of all groups, if it is NULL.
#' @param ... `since` (a time), `limit` (events of a page).
#' @param client Where the service is.
#' @return A data frame, newest change first: `at`, `group`, `name`, `from`, `to`, `kl`, `window`.
#' @export
kl_events <- function(group = NULL, ..., client = kl_client()) {
  entries <- all_pages(client, "events", "events", list(group = group, ...))
  data.frame(at = times_at(entries, "at"), group = texts_at(entries, "group"), name = texts_at(entries, "name"),
             from = texts_at(entries, "from"), to = texts_at(entries, "to"), kl = numbers_at(entries, "kl"),
             window = numbers_at(entries, "window"))
}
