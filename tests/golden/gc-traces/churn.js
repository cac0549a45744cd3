const kept = []; let n = 0;
const t = setInterval(() => { for (let i = 0; i < 4000; i++) { kept[(n++) % 20000] = { a: new Array(20).fill(i), b: "x" + i }; } if (n > 160000) { clearInterval(t); } }, 1);
