/* uPlot as the server gives it beside the page's modules: its iife build with a default export. */
import uPlot from "../../../../api/web/node_modules/uplot/dist/uPlot";
export default uPlot;
