# Requests: where the service is, what a refusal says, repeats.

#' Where the service is
#'
#' @param url The service's address; it may have a path, under which a proxy has the service.
#' @param token A token, which printing does not show.
#' @param timeout Seconds until a request is given up; `Inf` is none.
#' @param retries How often a request is repeated after 429, 502, 503, 504 or no response, at the time that
#'   `Retry-After` says. Observations have a key, and count once.
#' @return A client, for the argument `client` of the other functions.
#' @export
#' @examples
#' kl_client("https://drift.example/kldiv", token = "secret")
kl_client <- function(url = Sys.getenv("KLDIV_URL", "http://127.0.0.1:8080"), token = Sys.getenv("KLDIV_TOKEN"),
                      timeout = 60, retries = 3) {
  stopifnot(is.character(url), length(url) == 1, grepl("^https?://", url), is.numeric(timeout), timeout > 0, retries >= 0)
  base <- httr2::request(sub("/*$", "", url))
  if (is.finite(timeout)) base <- httr2::req_timeout(base, timeout)
  base <- httr2::req_retry(base, max_tries = retries + 1, backoff = function(n) min(2^n / 4, 10),
                           is_transient = function(response) httr2::resp_status(response) %in% c(429, 502, 503, 504))
  base <- httr2::req_error(base, is_error = function(response) httr2::resp_status(response) >= 300, body = refusal)
  if (nzchar(token)) base <- httr2::req_auth_bearer_token(base, trimws(token))
  structure(list(url = sub("//[^/@]*@", "//", base$url), request = function() base), class = "kl_client")
}

#' @export
print.kl_client <- function(x, ...) {
  cat("<kldiv at ", x$url, ">\n", sep = "")
  invisible(x)
}

#' @export
format.kl_client <- function(x, ...) paste0("<kldiv at ", x$url, ">")

# The text of a response as UTF-8, whatever bytes it has.
text_of <- function(response) {
  bytes <- response$body
  if (!is.raw(bytes)) return("")
  text <- rawToChar(bytes[bytes != 0])
  utf8(text)
}

# The sentence of a refusal: of the service, or of something between, which sends pages, nothing, or other JSON.
refusal <- function(response) {
  text <- text_of(response)
  json <- parsed(text)
  said <- if (is.list(json)) json$detail %||% json$error
  location <- httr2::resp_header(response, "location")
  if (!is.null(location)) return(paste("it is redirected to", location))
  if (is.character(said) && length(said) == 1) return(said)
  words <- first_words(text)
  if (nzchar(words)) words
}

# The value of JSON, or NULL. Of what is none jsonlite tells in the locale's encoding, with warnings.
parsed <- function(text) {
  suppressWarnings(tryCatch(jsonlite::fromJSON(text, simplifyVector = FALSE), error = function(error) NULL))
}

first_words <- function(text) {
  text <- gsub("(?is)<(style|script)\\b.*?</\\1>|<[^>]*>", " ", text, perl = TRUE)
  substr(trimws(gsub("[[:space:]]+", " ", text)), 1, 200)
}

`%||%` <- function(x, y) if (is.null(x)) y else x

# A text of Unicode, whatever encoding it is marked with, in any locale.
utf8 <- function(x) {
  x <- as.character(x)
  if (!length(x)) return(x)
  odd <- !is.na(x) & Encoding(x) %in% c("unknown", "bytes")
  valid <- odd & validUTF8(x)
  native <- odd & !valid
  Encoding(x)[valid] <- "UTF-8"
  x[native] <- iconv(x[native], if (l10n_info()$`UTF-8` || identical(l10n_info()$`Latin-1`, FALSE)) "latin1" else "", "UTF-8")
  enc2utf8(x)
}

# A segment of a path: each byte that is not a letter, a digit or -._~ is escaped, also that of names such as "%2F".
segment <- function(name) {
  name <- utf8(name)
  if (length(name) != 1 || is.na(name) || name %in% c("", ".", ".."))
    stop("'", name, "' is no name of a group or a monitor", call. = FALSE)
  bytes <- charToRaw(name)
  plain <- bytes %in% charToRaw("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
  paste0(ifelse(plain, rawToChar(bytes, multiple = TRUE), sprintf("%%%02X", as.integer(bytes))), collapse = "")
}

# Settings of a query: times as RFC 3339, several values with commas, NULL left out.
query_of <- function(settings) {
  settings <- settings[!vapply(settings, is.null, NA)]
  lapply(settings, function(value) {
    value <- if (inherits(value, c("POSIXt", "Date"))) time_text(value) else if (is.logical(value)) tolower(value)
             else if (is.numeric(value)) numbers_text(value) else utf8(value)
    paste(value, collapse = ",")
  })
}

time_text <- function(time) {
  if (inherits(time, "Date")) return(format(time, "%Y-%m-%d"))
  # format() cuts digits off: half a microsecond is added first.
  format(as.POSIXct(time) + 5e-7, "%Y-%m-%dT%H:%M:%OS6Z", tz = "UTC")
}

# Sends a request; its response, or an error of class httr2_http_STATUS.
perform <- function(client, verb, path, query = list(), body = NULL, type = NULL, accept = "application/json", key = NULL) {
  if (!inherits(client, "kl_client")) stop("client is made by kl_client()", call. = FALSE)
  request <- client$request()
  request <- httr2::req_url(request, paste0(request$url, "/", paste(vapply(path, segment, ""), collapse = "/")))
  request <- do.call(httr2::req_url_query, c(list(request), query_of(query)))
  request <- httr2::req_headers(httr2::req_method(request, verb), Accept = accept, `Idempotency-Key` = key)
  if (!is.null(body)) request <- httr2::req_method(httr2::req_body_raw(request, body, type), verb)
  # curl makes a GET of a POST that is redirected.
  if (verb != "GET") request <- httr2::req_options(request, followlocation = FALSE)
  httr2::req_perform(request)
}

# The JSON of a response: an object with a member of this name.
json_of <- function(response, member) {
  text <- text_of(response)
  json <- parsed(text)
  if (!is.list(json) || is.null(json[[member]]))
    stop("the response is not the service's: ", first_words(text), call. = FALSE)
  json
}

# The entries of all pages of a list.
all_pages <- function(client, path, member, query) {
  entries <- list()
  repeat {
    page <- json_of(perform(client, "GET", path, query), member)
    entries <- c(entries, page[[member]])
    if (is.null(page[["next"]])) return(entries)
    query$cursor <- page[["next"]]
  }
}
