# The loss.

TENSORS <- c("weight", "mask", "grad_output", "indices", "log_normalizer")

#' The Kullback-Leibler divergence, as PyTorch's KLDivLoss computes it
#'
#' @param input An array of log-probabilities, or of what `input_space` says. Its last axis is a tensor's last axis.
#' @param target An array of probabilities, or of what `target_space` says.
#' @param ... Options of the loss by their names, as `api/loss/README.md` has them: `reduction`, `log_target`, `dim` (axes
#'   count from 0, the last one is -1), `input_space`, `temperature` and others; the arrays `weight`, `mask` (logical),
#'   `grad_output`, and of a sparse target `indices`, which count from 1 as R does (NA is padding), and `log_normalizer`.
#'   With `gradient = "input"`, `"target"` or both, the value is a list.
#' @param dtype `"float64"`, or `"float32"`, to which numbers are rounded.
#' @param client Where the service is.
#' @return The loss, a number or an array, whose attribute `warnings` is a character vector if there are any. With
#'   `gradient` a list of `loss` and `gradient`, a list of arrays; with `partial = TRUE` a list of `sum` and `divisor`.
#'   Tensors of the package torch give a tensor, through which gradients flow.
#' @export
#' @examples
#' \dontrun{
#' student <- log(rbind(c(0.5, 0.3, 0.2), c(0.1, 0.1, 0.8)))
#' teacher <- rbind(c(0.6, 0.3, 0.1), c(0, 0.2, 0.8))
#' kl_div(student, teacher, reduction = "batchmean")
#' }
kl_div <- function(input, target, ..., dtype = c("float64", "float32"), client = kl_client()) {
  if (inherits(input, "torch_tensor")) return(torch_kl_div(input, target, ..., client = client))
  options <- list(...)
  if (length(options) && (is.null(names(options)) || any(names(options) == "")))
    stop("options of the loss have names, such as reduction = \"batchmean\"", call. = FALSE)
  is_tensor <- names(options) %in% TENSORS & !vapply(options, is.null, NA)
  arrays <- c(list(input = input, target = target), options[is_tensor])
  arrays <- arrays[!vapply(arrays, is.null, NA)]
  for (name in names(arrays)) arrays[[name]] <- numeric_array(name, arrays[[name]])
  float <- c(float64 = "F64", float32 = "F32")[[match.arg(dtype)]]
  type <- "application/vnd.safetensors"
  response <- perform(client, "POST", "kl_div", options[!is_tensor], write_safetensors(arrays, float, "indices"), type, type)
  results <- tryCatch(read_safetensors(response$body), error = function(error)
    stop("the response is not the service's: ", conditionMessage(error), call. = FALSE))
  warnings <- jsonlite::fromJSON(attr(results, "metadata")$warnings %||% "[]", simplifyVector = FALSE)
  warnings <- vapply(warnings, function(warning) warning$message %||% "", "")
  if (!is.null(results$sum)) return(list(sum = results$sum, divisor = results$divisor))
  loss <- results$loss
  if (length(warnings)) attr(loss, "warnings") <- warnings
  gradient <- results[grep("^gradient[.]", names(results))]
  if (!length(gradient)) return(loss)
  names(gradient) <- sub("^gradient[.]", "", names(gradient))
  list(loss = loss, gradient = gradient)
}

numeric_array <- function(name, value) {
  if (is.data.frame(value)) value <- as.matrix(value)
  if (!(is.numeric(value) || is.logical(value)) || is.factor(value) || is.list(value))
    stop(name, " is of class ", class(value)[1], ": arrays of numbers are taken", call. = FALSE)
  if (is.logical(value) && name != "mask") value[] <- as.double(value)
  if (name == "mask" && !is.logical(value)) {
    if (!all(value %in% 0:1)) stop("a mask is logical, or holds 0 and 1", call. = FALSE)
    value <- structure(value != 0, dim = dim(value))
  }
  if (name == "indices") { # those of the service count from 0
    if (!all(value %% 1 == 0 & abs(value) < 2^31 & value != 0, na.rm = TRUE))
      stop("indices are whole numbers, from 1 on, or NA for padding", call. = FALSE)
    value[is.na(value)] <- 0
    value <- value - 1
  }
  value
}

# By torch's tensors: float64 goes and comes, gradients are those of the service.
torch_kl_div <- function(input, target, reduction = "mean", ..., client) {
  if (!requireNamespace("torch", quietly = TRUE)) stop("tensors need the package torch", call. = FALSE)
  plain <- function(tensor) torch::as_array(tensor$detach()$to(device = "cpu", dtype = torch::torch_float64()))
  like <- function(array, tensor) torch::torch_tensor(array, dtype = tensor$dtype, device = tensor$device)
  loss <- torch::autograd_function(
    forward = function(ctx, input, target) {
      wanted <- c("input", "target")[c(input$requires_grad, target$requires_grad)]
      result <- kl_div(plain(input), plain(target), reduction = reduction, ..., client = client,
                       gradient = if (length(wanted)) wanted)
      if (!length(wanted)) return(like(result, input))
      gradient <- function(name) like(result$gradient[[name]] %||% 0, input)
      ctx$save_for_backward(input = gradient("input"), target = gradient("target"))
      like(result$loss, input)
    },
    backward = function(ctx, grad_output) {
      saved <- ctx$saved_variables
      list(input = grad_output * saved$input, target = grad_output * saved$target)
    }
  )
  loss(input, target)
}
