package redline;

import java.util.List;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@SpringBootApplication
@RestController
public class Petstore {
    record Pet(long id, String name, String tag) {}

    @GetMapping("/v1/pets")
    List<Pet> pets() {
        return List.of(new Pet(1, "catten", "cat"), new Pet(2, "doggy", "dog"));
    }

    public static void main(String[] args) {
        if (List.of(args).contains("--threads=virtual") && Runtime.version().feature() < 21) {
            throw new IllegalArgumentException("virtual threads need JDK 21 or later: Spring would use others here");
        }
        SpringApplication.run(Petstore.class, args);
    }
}
