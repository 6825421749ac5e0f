# Data frames as they travel: with what a column means.

quoted <- function(text) {
  text <- utf8(text)
  if (!length(text)) return(text)
  for (pair in list(c("\\", "\\\\"), c("\"", "\\\"")))
    text <- gsub(pair[1], pair[2], text, fixed = TRUE, useBytes = TRUE)
  Encoding(text) <- "UTF-8"
  for (code in c(1:31, 127)) {
    control <- rawToChar(as.raw(code))
    found <- grep(control, text, fixed = TRUE, useBytes = TRUE)
    if (length(found)) {
      text[found] <- gsub(control, sprintf("\\u%04x", code), text[found], fixed = TRUE, useBytes = TRUE)
      Encoding(text) <- "UTF-8"
    }
  }
  paste0("\"", text, "\"")
}

# A column as doubles, logicals or texts; NULL for what is none. Times are seconds since 1970, as from other clients.
column_of <- function(column) {
  if (!is.null(dim(column)) && length(dim(column)) > 1) return(NULL)
  if (is.factor(column)) return(utf8(levels(column))[as.integer(column)])
  if (inherits(column, "Date")) return(as.double(column) * 86400)
  if (inherits(column, "POSIXt")) return(as.double(as.POSIXct(column)))
  if (inherits(column, "difftime")) return(as.double(column, units = "secs"))
  if (is_integer64(column)) {
    values <- integer64_double(column)
    return(if (any(abs(values) >= 2^53, na.rm = TRUE)) integer64_text(column) else values)
  }
  if (is.character(column)) return(utf8(column))
  if (is.logical(column)) return(as.logical(column))
  if (is.numeric(column)) return(as.double(column))
  NULL
}

columns_of <- function(table) {
  if (!is.data.frame(table)) stop("a table is a data frame, not of class ", class(table)[1], call. = FALSE)
  names(table) <- utf8(names(table))
  if (anyDuplicated(names(table))) stop("column ", names(table)[anyDuplicated(names(table))], " stands twice", call. = FALSE)
  columns <- stats::setNames(lapply(seq_along(table), function(i) column_of(table[[i]])), names(table))
  left_out <- vapply(columns, is.null, NA)
  if (any(left_out))
    warning("columns are left out, for they hold neither numbers, texts, booleans nor times: ",
            paste(names(columns)[left_out], collapse = ", "), call. = FALSE)
  columns[!left_out]
}

column_json <- function(column) {
  cells <- if (is.character(column)) quoted(column) else if (is.logical(column)) tolower(column) else {
    cells <- numbers_text(column)
    ifelse(is.infinite(column), paste0("\"", cells, "\""), cells)
  }
  cells[is.na(column)] <- "null"
  paste0("[", paste(cells, collapse = ","), "]")
}

# The body of a table and its media type: the bytes of numbers, else JSON.
table_body <- function(table) {
  columns <- columns_of(table)
  is_bytes <- vapply(columns, function(column) is.double(column) || (is.logical(column) && !anyNA(column)), NA)
  if (length(columns) && all(is_bytes) && !"__metadata__" %in% names(columns))
    return(list(body = write_safetensors(columns), type = "application/vnd.safetensors"))
  texts <- mapply(function(name, column) paste0(quoted(name), ":", column_json(column)), names(columns), columns)
  list(body = charToRaw(paste0("{\"columns\":{", paste(texts, collapse = ","), "}}")), type = "application/json")
}

# What the service says of a table, as warnings of R. Texts of a data frame are labels by its owner's choice.
tell <- function(json) {
  for (each in json$warnings)
    if (!identical(each$code, "numbers_as_text"))
      warning(structure(class = c(paste0("kldiv_", each$code), "kldiv_warning", "warning", "condition"),
                        list(message = paste0(each$column, if (!is.null(each$column)) ": ", each$message), call = NULL)))
}

# A member of each entry: text, or a number, of which infinite ones come as texts.
texts_at <- function(entries, ...) vapply(entries, function(entry) {
  value <- Reduce(function(at, name) if (is.list(at)) at[[name]], c(...), entry)
  if (is.null(value)) NA_character_ else as.character(value)[1]
}, "")
numbers_at <- function(entries, ...) suppressWarnings(vapply(entries, function(entry) {
  value <- Reduce(function(at, name) if (is.list(at)) at[[name]], c(...), entry)
  if (is.null(value)) NA_real_ else as.double(value)[1]
}, 0))
times_at <- function(entries, ...) {
  text <- sub("Z$", "", texts_at(entries, ...))
  as.POSIXct(strptime(text, "%Y-%m-%dT%H:%M:%OS", tz = "UTC"))
}
