// Float16Array, for compilers that know it.
import { Client } from "kldiv";

const halves = new Float16Array(4), tensor = { data: halves, shape: [2, 2] };
export const calls = (client: Client): unknown[] => [client.group("g").observe({ x: halves }), client.klDiv(tensor, tensor)];
