# Arrays as safetensors: a header in JSON, then the bytes of each. R's arrays lie column by column, tensors row by row.

# A list of arrays by names, logical ones as BOOL, those named in `whole` as I32, others as F64, or as F32 that rounds.
write_safetensors <- function(arrays, float = "F64", whole = NULL) {
  dtypes <- ifelse(vapply(arrays, is.logical, NA), "BOOL", ifelse(names(arrays) %in% whole, "I32", float))
  arrays <- Map(function(array, dtype) {
    if (is_integer64(array)) array <- structure(integer64_double(array), dim = dim(array))
    array <- as.array(array)
    list(shape = dim(array), values = as.vector(aperm(array)), dtype = dtype)
  }, arrays, dtypes)
  sizes <- c(BOOL = 1, F64 = 8, F32 = 4)
  parts <- lapply(arrays, function(array) {
    if (array$dtype == "I32") return(writeBin(as.integer(array$values), raw(), 4, "little"))
    if (array$dtype != "BOOL") return(writeBin(as.double(array$values), raw(), sizes[[array$dtype]], "little"))
    if (anyNA(array$values)) stop("a mask has no missing values", call. = FALSE)
    as.raw(array$values)
  })
  ends <- cumsum(as.double(lengths(parts)))
  entries <- mapply(function(name, array, end, size) {
    sprintf("%s:{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%.0f,%.0f]}", quoted(name), array$dtype,
            paste(sprintf("%.0f", as.double(array$shape)), collapse = ","), end - size, end)
  }, names(arrays), arrays, ends, lengths(parts))
  header <- charToRaw(paste0("{", paste(entries, collapse = ","), "}"))
  c(writeBin(c(length(header), 0L), raw(), 4, "little"), header, unlist(parts, use.names = FALSE))
}

# How each dtype is read; others are refused.
readers <- list(
  F64 = function(bytes) readBin(bytes, "double", length(bytes) / 8, 8, endian = "little"),
  F32 = function(bytes) readBin(bytes, "double", length(bytes) / 4, 4, endian = "little"),
  F16 = function(bytes) {
    bits <- readBin(bytes, "integer", length(bytes) / 2, 2, signed = FALSE, endian = "little")
    exponent <- bits %/% 1024 %% 32
    fraction <- bits %% 1024
    value <- ifelse(exponent == 0, fraction * 2^-24, (1024 + fraction) * 2^(exponent - 25))
    value[exponent == 31] <- ifelse(fraction[exponent == 31] == 0, Inf, NaN)
    ifelse(bits >= 32768, -value, value)
  },
  BF16 = function(bytes) {
    wide <- as.vector(rbind(as.raw(0), as.raw(0), matrix(bytes, 2)))
    readBin(wide, "double", length(bytes) / 2, 4, endian = "little")
  },
  I64 = function(bytes) integer64_double(readBin(bytes, "double", length(bytes) / 8, 8, endian = "little")),
  I32 = function(bytes) {
    words <- unsigned(readBin(bytes, "integer", length(bytes) / 4, 4, endian = "little"))
    ifelse(words >= 2^31, words - 2^32, words)
  },
  I16 = function(bytes) as.double(readBin(bytes, "integer", length(bytes) / 2, 2, endian = "little")),
  I8 = function(bytes) as.double(readBin(bytes, "integer", length(bytes), 1)),
  U32 = function(bytes) unsigned(readBin(bytes, "integer", length(bytes) / 4, 4, endian = "little")),
  U16 = function(bytes) as.double(readBin(bytes, "integer", length(bytes) / 2, 2, signed = FALSE, endian = "little")),
  U8 = function(bytes) as.double(bytes),
  BOOL = function(bytes) bytes != 0
)

# The arrays of a file by their names; its metadata is an attribute.
read_safetensors <- function(file) {
  size <- readBin(file, "integer", 1, 4, endian = "little")
  if (length(file) < 8 || size < 2 || size > length(file) - 8) stop("the response is no safetensors", call. = FALSE)
  header <- jsonlite::fromJSON(utf8(rawToChar(file[8 + seq_len(size)])), simplifyVector = FALSE)
  arrays <- lapply(header[names(header) != "__metadata__"], function(entry) {
    reader <- readers[[entry$dtype]]
    if (is.null(reader)) stop("dtype ", entry$dtype, " of safetensors is not read", call. = FALSE)
    offsets <- as.double(unlist(entry$data_offsets))
    values <- reader(file[8 + size + offsets[1] + seq_len(offsets[2] - offsets[1])])
    shape <- as.integer(unlist(entry$shape))
    if (length(shape) > 1) aperm(array(values, rev(shape))) else values
  })
  structure(arrays, metadata = header[["__metadata__"]])
}
